/* SPDX-License-Identifier: Apache-2.0 */
/* The files of many ranks: classes, groups, forms of files, writing. */
#include "chakra_bytes.h"
#include "fixture.h"
#include "trace/trace.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

static char dir[] = "/tmp/stepcast-test-XXXXXX";
static char prefix[100], out[100];
static sc_workload w;
static ck file, node;

static void empty_dir(void)
{
    char path[400];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
            unlink(path);
        }
    if (d) closedir(d);
}

static int make_dir(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL) return 1;
    snprintf(prefix, sizeof prefix, "%s/t", dir);
    snprintf(out, sizeof out, "%s/out", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    empty_dir();
    return rmdir(dir);
}

static int start(void **state)
{
    empty_dir();
    return setup(state);
}

static void put(uint32_t rank, const char *suffix, const void *data, size_t n)
{
    char path[200];
    snprintf(path, sizeof path, "%s.%u%s", prefix, rank, suffix);
    assert_int_equal(sc_file_write(path, data, n, &err), SC_OK);
}

static void read_ranks(uint32_t n, const sc_trace_opts *o)
{
    sc_trace_read(prefix, n, o, &arena, &w, &err);
    no_error();
    sc_workload_check(&w, &err);
    no_error();
}

static void fails(uint32_t n, const sc_trace_opts *o, const char *want)
{
    char text[600] = "";
    sc_err_init(&err);
    assert_int_not_equal(sc_trace_read(prefix, n, o, &arena, &w, &err), SC_OK);
    sc_diag_format(&err.d[0], text, sizeof text);
    size_t in_dir = strncmp(text, dir, strlen(dir)) == 0 ? strlen(dir) + 1 : 0;
    assert_string_equal(text + in_dir, want);
}

static void coll(uint64_t id, const char *group)
{
    ck_node(&node, id, SC_TASK_COLL);
    ck_attr(&node, "comm_type", 9, SC_ALL_REDUCE);
    ck_attr(&node, "comm_size", 9, 4096);
    if (group) ck_attr_text(&node, "pg_name", group);
    ck_message(&file, &node);
}

static void message(uint64_t id, bool send, uint32_t self, uint32_t other,
                    uint32_t tag)
{
    ck_node(&node, id, send ? SC_TASK_SEND : SC_TASK_RECV);
    ck_attr(&node, "comm_src", 11, send ? self : other);
    ck_attr(&node, "comm_dst", 11, send ? other : self);
    ck_attr(&node, "comm_tag", 11, tag);
    ck_attr(&node, "comm_size", 13, 64);
    ck_message(&file, &node);
}

static const uint32_t r01[] = {0, 1}, r23[] = {2, 3}, r32[] = {3, 2};
static const sc_rank_group pairs[] = {{"1", 2, r01}, {"22", 2, r32}};
static const sc_trace_opts with_pairs = {.n_groups = 2, .groups = pairs};

/* Rank r reduces in its pair and sends to the next one; ids, tags and lengths of
 * files differ, the class does not. */
static void put_ring(uint32_t r, bool same_ids)
{
    uint64_t id = same_ids ? 0 : 1000 * r;
    ck_file(&file);
    coll(id, r < 2 ? "1" : "22");
    message(id + 1, true, r, (r + 1) % 4, 100 * r);
    message(id + 2, false, r, (r + 3) % 4, 100 * ((r + 3) % 4));
    put(r, ".et", file.b, file.n);
}

static void classes(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < 4; r++) put_ring(r, false);
    assert_int_equal(sc_trace_ranks(prefix), 4);
    read_ranks(4, &with_pairs);
    assert_int_equal(w.n_classes, 1);
    assert_int_equal(w.n_groups, 2);
    for (uint32_t r = 0; r < 4; r++) {
        const sc_rank_trace *t = &w.ranks[r];
        assert_int_equal(t->groups[0], r / 2);
        assert_int_equal(t->peers[w.classes[0].peer[1]], (r + 1) % 4);
        assert_int_equal(t->peers[w.classes[0].peer[2]], (r + 3) % 4);
        assert_int_equal(t->tags[w.classes[0].tag[1]], 100 * r);
    }
    sc_trace_opts o = with_pairs;
    o.ids = true;
    read_ranks(4, &o);
    assert_int_equal(w.n_classes, 4);
    for (uint32_t r = 0; r < 4; r++) put_ring(r, true);
    read_ranks(4, &o);
    assert_int_equal(w.n_classes, 1);
}

/* What differs in anything but names makes another class. */
static void other_classes(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < 4; r++) {
        ck_file(&file);
        coll(0, NULL);
        if (r == 1) coll(1, NULL);
        if (r == 2) coll(1, "1");
        if (r == 3) message(1, true, r, 0, 0);
        put(r, ".et", file.b, file.n);
    }
    static const uint32_t all[] = {0, 1, 2};
    const sc_rank_group g = {"1", 3, all};
    sc_trace_opts o = {.n_groups = 1, .groups = &g};
    read_ranks(4, &o);
    assert_int_equal(w.n_classes, 4);
}

/* A table that is equal for all ranks is stored once. */
static void shared_tables(void **state)
{
    (void)state;
    ck_file(&file);
    coll(0, "1");
    put(0, ".et", file.b, file.n);
    put(1, ".et", file.b, file.n);
    sc_trace_opts o = {.n_groups = 1, .groups = pairs};
    read_ranks(2, &o);
    assert_ptr_equal(w.ranks[0].groups, w.ranks[1].groups);
}

/* Classes that differ in one column share the others. */
static void shared_columns(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < 3; r++) {
        ck_file(&file);
        ck_node(&node, 0, SC_TASK_COMP);
        ck_text(&node, 2, r == 2 ? "b" : "a");
        ck_num(&node, 7, r);
        ck_message(&file, &node);
        put(r, ".et", file.b, file.n);
    }
    sc_trace_opts o = {.names = true};
    read_ranks(3, &o);
    assert_int_equal(w.n_classes, 3);
    const sc_task_list *l = w.classes;
    for (uint32_t i = 1; i < 3; i++) {
        assert_ptr_equal(l[0].size, l[i].size);
        assert_ptr_equal(l[0].succ_head, l[i].succ_head);
        assert_int_equal(l[i].duration[0], i * 1000000);
    }
    assert_ptr_equal(l[0].name, l[1].name);
    assert_string_equal(l[2].name[0], "b");
}

static void wrong_ranks(void **state)
{
    (void)state;
    fails(1, NULL,
          "t.0.et: error: no such trace; a trace is PREFIX.RANK.et (.et.gz, "
          ".et.zst) or PREFIX.RANK.json, ranks from 0");
    fails(3, &with_pairs,
          "error: communicator group \"22\" has rank 3, but there are ranks "
          "0..2");
    const sc_rank_group named[] = {{"left", 2, r01}, {"right", 2, r23}};
    const sc_trace_opts with_named = {.n_groups = 2, .groups = named};
    ck_file(&file);
    coll(0, "rigth");
    put(0, ".et", file.b, file.n);
    put(1, ".et", file.b, file.n);
    fails(4, &with_named,
          "t.0.et:byte 9: error: communicator group \"rigth\" is not defined; "
          "the nearest is \"right\"");
    fails(3, NULL,
          "t.0.et:byte 9: error: communicator group \"rigth\" is not defined; "
          "give the communicator-group file");
    ck_file(&file);
    coll(0, "22");
    put(0, ".et", file.b, file.n);
    fails(4, &with_pairs,
          "t.0.et:byte 9: error: rank 0 uses communicator group \"22\", which "
          "it is not a member of");
    ck_file(&file);
    put(0, ".et", file.b, file.n);
    put(1, ".et", file.b, file.n);
    fails(3, NULL, "t.2.et: error: no trace of rank 2; found ranks 0..1");
    message(5, true, 0, 3, 0);
    put(0, ".et", file.b, file.n);
    fails(3, NULL,
          "t.0.et:byte 9: error: node 5: comm_dst is 3, but there are ranks "
          "0..2");
    ck_file(&file);
    message(5, true, 1, 2, 0);
    put(0, ".et", file.b, file.n);
    fails(3, NULL,
          "t.0.et:byte 9: error: node 5: comm_src is 1 in the trace of rank 0");
}

static void group_zero(void **state)
{
    (void)state;
    ck_file(&file);
    coll(0, "0");
    coll(1, "");
    coll(2, NULL);
    put(0, ".et", file.b, file.n);
    put(1, ".et", file.b, file.n);
    read_ranks(2, NULL);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(w.classes[0].group[i] == SC_TASK_WORLD);
    const sc_rank_group some = {"0", 2, r01};
    sc_trace_opts o = {.n_groups = 1, .groups = &some};
    put(2, ".et", file.b, 8);
    read_ranks(3, &o);
    assert_true(w.classes[0].group[0] != SC_TASK_WORLD);
    o.zero_is_world = true;
    read_ranks(3, &o);
    assert_true(w.classes[0].group[0] == SC_TASK_WORLD);
}

static void metadata(uint64_t id, const char *values)
{
    ck io = {.n = 0};
    ck_text(&io, 1, values);
    ck_node(&node, id, SC_TASK_METADATA);
    ck_inside(&node, 8, &io);
    ck_message(&file, &node);
}

static void process_groups(void **state)
{
    (void)state;
    static const char *const text[] = {
        "['[{\"pg_name\": \"7\", \"ranks\": [0, 1]}, "
        "{\"pg_name\": \"8\", \"ranks\": []}]']",
        "['[{\"pg_name\": \"7\", \"ranks\": [3, 2]}, "
        "{\"pg_name\": 8, \"pg_size\": 4, \"ranks\": []}]']"};
    for (uint32_t r = 0; r < 4; r++) {
        ck_file(&file);
        metadata(0, text[r / 2]);
        coll(1, "7");
        coll(2, "8");
        put(r, ".et", file.b, file.n);
    }
    read_ranks(4, NULL);
    assert_int_equal(w.n_classes, 1);
    assert_int_equal(w.n_groups, 3);
    for (uint32_t r = 0; r < 4; r++) {
        const sc_rank_group *pair = &w.groups[w.ranks[r].groups[0]];
        assert_int_equal(pair->n, 2);
        assert_int_equal(pair->rank[0], r < 2 ? 0 : 3);
        assert_int_equal(w.groups[w.ranks[r].groups[1]].n, 4);
        assert_int_equal(w.ranks[r].groups[1], w.ranks[0].groups[1]);
    }
    ck_file(&file);
    metadata(0, "['[{\"pg_name\": \"7\", \"ranks\": [9]}]']");
    put(0, ".et", file.b, file.n);
    fails(4, NULL,
          "t.0.et:byte 9: error: node 0: \"9\" is not one of the ranks 0..3");
    ck_file(&file);
    metadata(0, "['[{\"pg_name\": \"7\", \"ranks\": [1, 1]}]']");
    put(0, ".et", file.b, file.n);
    fails(4, NULL,
          "t.0.et:byte 9: error: node 0: a rank occurs twice in a group");
}

static void same_list(const sc_task_list *x, const sc_task_list *y)
{
    assert_int_equal(x->n_tasks, y->n_tasks);
    assert_int_equal(x->n_deps, y->n_deps);
    size_t n = x->n_tasks;
    assert_memory_equal(x->kind, y->kind, n);
    assert_memory_equal(x->coll, y->coll, n);
    assert_memory_equal(x->flags, y->flags, n);
    assert_memory_equal(x->n_preds, y->n_preds, n * 4);
    assert_memory_equal(x->succ_head, y->succ_head, (n + 1) * 4);
    assert_memory_equal(x->succ, y->succ, x->n_deps * sizeof *x->succ);
    assert_memory_equal(x->duration, y->duration, n * 8);
    assert_memory_equal(x->size, y->size, n * 8);
    assert_memory_equal(x->group, y->group, n * 4);
    assert_memory_equal(x->peer, y->peer, n * 4);
    assert_memory_equal(x->tag, y->tag, n * 4);
    assert_memory_equal(x->id, y->id, n * 8);
    assert_memory_equal(x->ops, y->ops, n * 8);
    assert_memory_equal(x->priority, y->priority, n * 4);
    assert_memory_equal(x->dims, y->dims, n * 4);
    for (uint32_t i = 0; x->name && i < n; i++)
        assert_string_equal(x->name[i], y->name[i]);
    assert_int_equal(x->n_uses, y->n_uses);
    assert_int_equal(x->n_tensors, y->n_tensors);
    if (x->n_uses == 0) return;
    assert_memory_equal(x->use_head, y->use_head, (n + 1) * 4);
    assert_memory_equal(x->use_out, y->use_out, n * 4);
    assert_memory_equal(x->use_tensor, y->use_tensor, x->n_uses * 4);
    assert_memory_equal(x->use_bytes, y->use_bytes, x->n_uses * 8);
    for (uint32_t i = 0; i < x->n_tensors; i++)
        assert_string_equal(x->tensor[i], y->tensor[i]);
}

static void same_workload(const sc_workload *x, const sc_workload *y)
{
    assert_int_equal(x->n_ranks, y->n_ranks);
    assert_int_equal(x->n_classes, y->n_classes);
    assert_int_equal(x->n_groups, y->n_groups);
    for (uint32_t i = 0; i < x->n_classes; i++)
        same_list(&x->classes[i], &y->classes[i]);
    for (uint32_t i = 0; i < x->n_groups; i++) {
        assert_string_equal(x->groups[i].name, y->groups[i].name);
        assert_int_equal(x->groups[i].n, y->groups[i].n);
        assert_memory_equal(x->groups[i].rank, y->groups[i].rank,
                            x->groups[i].n * sizeof(uint32_t));
    }
    for (uint32_t r = 0; r < x->n_ranks; r++) {
        const sc_rank_trace *s = &x->ranks[r], *t = &y->ranks[r];
        const sc_task_list *l = &x->classes[s->cls];
        assert_int_equal(s->cls, t->cls);
        assert_memory_equal(s->groups, t->groups, l->n_groups * 4);
        assert_memory_equal(s->peers, t->peers, l->n_peers * 4);
        assert_memory_equal(s->tags, t->tags, l->n_tags * 4);
    }
}

/* All there is, written and read again. */
static void put_everything(uint32_t r)
{
    ck a = {.n = 0}, list = {.n = 0};
    ck_file(&file);
    coll(3 + r / 2, r < 2 ? "1" : "22");
    message(10, true, r, (r + 1) % 4, 7);
    ck_node(&node, 11, SC_TASK_COMP);
    ck_text(&node, 2, "gemm");
    ck_num(&node, 7, 12);
    ck_num(&node, 5, 10);
    ck_num(&node, 4, 3 + r / 2);
    ck_attr(&node, "duration_ps", 13, 12345678);
    ck_attr(&node, "num_ops", 9, 123456789012);
    ck_attr(&node, "tensor_size", 13, 99);
    ck_attr(&node, "is_cpu_op", 7, r == 3);
    ck_text(&list, 1, "x");
    ck_text(&list, 1, "64");
    ck_text(&a, 1, "outputs");
    ck_inside(&a, 30, &list);
    ck_inside(&node, 10, &a);
    ck_message(&file, &node);
    ck_node(&node, 12, SC_TASK_COLL);
    ck_attr(&node, "comm_type", 9, 5);
    ck_attr(&node, "comm_root", 9, 1);
    ck_attr(&node, "comm_size", 9, 5);
    ck_attr(&node, "comm_priority", 9, 5);
    ck_num(&node, 7, 3);
    static const uint8_t on[] = {0, 1, 0, 0, 0, 1};
    a.n = list.n = 0;
    ck_tag(&list, 1, CK_BYTES);
    ck_varint(&list, sizeof on);
    ck_raw(&list, on, sizeof on);
    ck_text(&a, 1, "involved_dim");
    ck_inside(&a, 28, &list);
    ck_inside(&node, 10, &a);
    ck_message(&file, &node);
    for (unsigned k = SC_TASK_LOAD; k <= SC_TASK_COLL; k++) { /* bare ones */
        ck_node(&node, 13 + k, k);
        ck_message(&file, &node);
    }
    put(r, ".et", file.b, file.n);
}

static void round_trip(void **state)
{
    (void)state;
    sc_trace_opts o = with_pairs;
    o.names = o.tensors = true;
    for (uint32_t r = 0; r < 4; r++) put_everything(r);
    read_ranks(4, &o);
    assert_int_equal(w.n_classes, 2);
    sc_trace_write(&w, out, &err);
    no_error();
    sc_workload again;
    sc_trace_read(out, 4, &o, &arena, &again, &err);
    no_error();
    same_workload(&w, &again);
}

/* Names that ASTRA-sim can't read become numbers. */
static void renamed_groups(void **state)
{
    (void)state;
    const sc_rank_group g[] = {{"tp", 2, r01}, {"dp", 2, r23}};
    sc_trace_opts o = {.n_groups = 2, .groups = g};
    for (uint32_t r = 0; r < 4; r++) {
        ck_file(&file);
        coll(0, r < 2 ? "tp" : "dp");
        put(r, ".et", file.b, file.n);
    }
    read_ranks(4, &o);
    sc_trace_write(&w, out, &err);
    no_error();
    char path[120], *text;
    size_t len;
    snprintf(path, sizeof path, "%s.json", out);
    sc_file_read(path, 1000, &arena, &text, &len, &err);
    no_error();
    assert_string_equal(text, "{\"1\":[0,1],\"2\":[2,3]}");
}

static void compressed(void **state)
{
    (void)state;
    char path[120], z[1000];
    put_ring(0, true);
    put_ring(1, true);
    put_ring(2, true);
    put_ring(3, true);
    read_ranks(4, &with_pairs);
    sc_workload plain = w;
    put_ring(1, true); /* in `file` */
    snprintf(path, sizeof path, "%s.1.et", prefix);
    unlink(path);
    snprintf(path, sizeof path, "%s.1.et.gz", prefix);
    assert_int_equal(sc_file_write_gzip(path, (char *)file.b, file.n, &err),
                     SC_OK);
    put_ring(2, true);
    snprintf(path, sizeof path, "%s.2.et", prefix);
    unlink(path);
    size_t n = ZSTD_compress(z, sizeof z, file.b, file.n, 3);
    assert_false(ZSTD_isError(n));
    put(2, ".et.zst", z, n);
    read_ranks(4, &with_pairs);
    same_workload(&plain, &w);
    put(2, ".et.zst", z, n - 5);
    fails(4, &with_pairs, "t.2.et.zst: error: compressed data ends too early");
}

/* The same two nodes in the three habits of writing JSON. */
static void json(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\n  \"version\": \"0.0.4\"\n}{\n  \"name\": \"a\",\n"
        "  \"type\": \"COMP_NODE\",\n  \"durationMicros\": \"5\",\n"
        "  \"attr\": [{\"name\": \"num_ops\", \"int64Val\": \"77\"}]\n}{"
        "\"id\": \"1\", \"name\": \"b\", \"type\": \"COMM_COLL_NODE\", "
        "\"dataDeps\": [\"0\"], \"attr\": ["
        "{\"name\": \"comm_type\", \"int64Val\": \"2\"}, "
        "{\"name\": \"pg_name\", \"stringVal\": \"1\"}, "
        "{\"name\": \"is_cpu_op\", \"boolVal\": false}, "
        "{\"name\": \"involved_dim\", \"boolList\": "
        "{\"values\": [true, false, true]}}, "
        "{\"name\": \"comm_size\", \"uint64Val\": \"64\"}]}",
        "[{\"id\": 0, \"name\": \"a\", \"type\": 4, \"duration_micros\": 5, "
        "\"attr\": [{\"name\": \"num_ops\", \"int64_val\": 77}]}, "
        "{\"id\": 1, \"name\": \"b\", \"type\": 7, \"data_deps\": [0], "
        "\"attr\": [{\"name\": \"comm_type\", \"int64_val\": 2}, "
        "{\"name\": \"pg_name\", \"int64_val\": 1}, "
        "{\"name\": \"involved_dim\", \"bool_list\": [true, false, true]}, "
        "{\"name\": \"comm_size\", \"int64_val\": 64}]}]",
        "{\"workload_graph\": [{\"Id\": 0, \"Name\": \"a\", \"NodeType\": 4, "
        "\"runtime\": 5, \"data_deps\": [], \"ctrlDeps\": [9], \"num_ops\": "
        "77}, "
        "{\"Id\": 1, \"Name\": \"b\", \"NodeType\": 7, \"is_cpu_op\": false, "
        "\"data_deps\": [0], \"comm_type\": 2, \"comm_size\": 64, "
        "\"pg_name\": \"1\", \"involved_dim\": [1, 0, 1]}]}"};
    sc_workload first;
    sc_trace_opts o = {.names = true};
    for (size_t i = 0; i < SC_COUNT(texts); i++) {
        sc_trace_read_one(texts[i], strlen(texts[i]), "t.json", &o, &arena, &w,
                          &err);
        no_error();
        if (i == 0) first = w;
        same_list(&first.classes[0], &w.classes[0]);
    }
    assert_int_equal(w.classes[0].duration[0], 5000000);
    assert_int_equal(w.classes[0].ops[0], 77);
    assert_int_equal(w.classes[0].size[1], 64);
    assert_int_equal(w.classes[0].dims[1], 5);
    put(0, ".json", texts[0], strlen(texts[0]));
    put(1, ".json", texts[1], strlen(texts[1]));
    o.n_groups = 1;
    o.groups = pairs;
    read_ranks(2, &o);
    assert_int_equal(w.n_classes, 1);
}

static void join(void **state)
{
    (void)state;
    sc_workload jobs[2], all;
    for (uint32_t r = 0; r < 4; r++) put_ring(r, false);
    read_ranks(4, &with_pairs);
    jobs[0] = jobs[1] = w;
    sc_workload_join(jobs, 2, &arena, &all, &err);
    no_error();
    sc_workload_check(&all, &err);
    no_error();
    assert_int_equal(all.n_ranks, 8);
    assert_int_equal(all.jobs[1].first, 4);
    assert_int_equal(all.ranks[5].job, 1);
    assert_int_equal(all.ranks[5].cls, 1);
    assert_int_equal(all.n_groups, 4);
    for (uint32_t r = 0; r < 8; r++) { /* pairs 0 1, 3 2, 4 5 and 7 6 */
        assert_int_equal(all.ranks[r].groups[0], r / 2);
        const sc_rank_group *g = &all.groups[r / 2];
        assert_int_equal(g->n, 2);
        assert_int_equal(g->rank[r % 2], r % 4 < 2 ? r : r ^ 1);
    }
    assert_int_equal(all.ranks[5].peers[0], 6);
    assert_int_not_equal(sc_trace_write(&all, out, &err), SC_OK);
}

/* The check finds what is broken. */
static void check(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < 4; r++) put_ring(r, false);
    read_ranks(4, &with_pairs);
    uint32_t *broken[] = {&w.classes[0].n_preds[0],
                          &w.classes[0].peer[1],
                          &w.classes[0].tag[1],
                          &w.classes[0].group[0],
                          &w.classes[0].succ_head[1],
                          &w.jobs[0].first,
                          &w.ranks[1].cls};
    for (size_t i = 0; i < SC_COUNT(broken); i++) {
        uint32_t was = *broken[i];
        *broken[i] = 9;
        assert_int_equal(sc_workload_check(&w, NULL), SC_EBUG);
        *broken[i] = was;
    }
    assert_int_equal(sc_workload_check(&w, NULL), SC_OK);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, teardown)
    const struct CMUnitTest tests[] = {
        T(classes),        T(other_classes), T(shared_tables),
        T(shared_columns), T(wrong_ranks),   T(group_zero),
        T(process_groups), T(round_trip),    T(renamed_groups),
        T(compressed),     T(json),          T(join),
        T(check),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
