/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - the state of one simulated workload.
 *
 * Everything that happens is an event of one queue, ordered by time and, at one
 * time, by insertion. What a rank schedules for itself at one time is one event
 * (a batch), which happens where the first of its calls was added.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "base/blocks.h"
#include "sim/collective.h"
#include "trace/trace.h"

/* A heap of task indices, smallest first. */
typedef struct sim_heap {
    uint32_t *task;
    uint32_t n, cap;
} sim_heap;

/* A queue of streams: those that run first, then by priority. */
typedef struct sim_dim_queue {
    struct sim_stream *head;
    uint32_t running;
} sim_dim_queue;

typedef struct sim_next_queue { /* next queue of a dimension */
    uint32_t any, first, last;
} sim_next_queue;

/* Collectives that wait for their members (SIM_RENDEZVOUS) hold nothing. */
enum { SIM_HOST, SIM_COMPUTE, SIM_COMM, SIM_RECV, SIM_RENDEZVOUS, SIM_SLOTS };

typedef struct sim_bus sim_bus;
typedef struct sim_world sim_world;

struct sim_rank {
    const sc_task_list *tasks;
    const sc_rank_trace *trace;
    uint32_t id;                  /* the rank it stands for */
    double peak_share, mem_share; /* of the system's peak and bandwidth */
    uint32_t *left;               /* [n_tasks] predecessors to come */
    sim_heap ready[SIM_SLOTS];
    sim_heap fresh; /* tasks that became ready while others are issued */
    uint32_t busy[SIM_SLOTS];
    uint32_t n_done;
    bool issuing, finished;
    int32_t priority; /* of the next collective */
    sim_batch *batches;
    struct sim_bus *bus;        /* NULL: not used yet */
    sim_dim_queue *queues;      /* [comm_slots * dims * queues] */
    sim_next_queue *next_queue; /* [dims] */
    uint8_t *trees;             /* [ops * dims] which of two trees is next */
    /* rendezvous.c: complete collectives; the first `granted` have a slot */
    struct sim_ticket *rendezvous_queue, *queue_end;
    uint32_t n_queued, granted;
    bool touched;
    bool *slot_used; /* [comm_slots] by a collective */
    sc_time compute_since, comm_since, waits_since;
    sc_time *waits; /* of `out`, what counts since then; NULL: nothing */
    uint32_t computing, communicating, loading;
    sc_rank_times out;
    sc_task_span *span; /* [n_tasks] NULL: not recorded */
};

typedef struct sim_message {
    sim_event e;              /* rank: simulated rank that receives */
    void *what;               /* sim_stream that receives, or sim_pair */
    void *from;               /* sim_stream, or owner of the sending task */
    struct sim_message *next; /* in the queue of a link */
    uint64_t link;            /* whose queue */
    const uint32_t *path;     /* [n_path] links of a machine */
    uint32_t n_path;
    uint64_t size;
    sc_time tail;      /* when the last byte has arrived where the head is */
    double load;       /* factor on the time in which it occupies its ports */
    uint32_t src, dst; /* ranks of the network */
    uint32_t at;       /* where the head is: a rank, or a step of the path */
    uint32_t task;     /* that sends, or (asking) receives */
    uint32_t slot;     /* sender as the receiver's mailbox knows it */
    uint32_t back;     /* the receiver as the sender's mailbox knows it */
    uint16_t phase;
    uint8_t kind; /* SIM_MSG_* */
    bool inside;  /* a switch */
} sim_message;

enum { SIM_MSG_COLL, SIM_MSG_PAIR, SIM_MSG_COLL_ASK, SIM_MSG_PAIR_ASK };

/* A continuation at the present time, after the current event. */
enum {
    SIM_DEFERRED_RECEIVE,
    SIM_DEFERRED_SEND,
    SIM_DEFERRED_PAIR,
    SIM_DEFERRED_PAIR_SEND,
    SIM_DEFERRED_SWITCH, /* the first bytes of all members are at the switch */
    SIM_DEFERRED_LANDED  /* a member has what the switch sent */
};

typedef struct sim_deferred {
    sim_event e;
    void *what;  /* sim_stream or sim_pair */
    void *owner; /* of a pair's task: custom collective, or NULL */
    uint64_t size;
    uint32_t kind, phase;
    uint32_t slot; /* or task */
} sim_deferred;

typedef struct sim_link {
    sc_time free; /* when the next message may enter */
    sc_time busy;
    uint64_t bytes;
    sim_message *head, *tail; /* store-and-forward: messages that wait */
    bool taken;               /* a message is being sent */
} sim_link;

typedef struct sim_link_event { /* a link has sent its message */
    sim_event e;
    uint64_t link;
} sim_link_event;

typedef struct sim_dim { /* the network, converted */
    sc_dim_kind kind;
    uint32_t size, stride;
    double bytes_per_ns, latency_ns;
    uint64_t first_link;
} sim_dim;

/* What a compatible mode may replace (compat/compat.h). */
typedef struct sim_hooks {
    /* A collective that does not wait for its members (SIM_RENDEZVOUS)
     * starts. */
    void (*start)(sim_world *w, sim_rank *r, uint32_t task);
    /* Queue and direction of a stream in one of its phases. */
    void (*queue)(const sim_world *w, sim_stream *s, uint32_t phase);
    /* Number and size of the chunks of a collective. */
    void (*split)(sim_world *w, const sim_comm *c, sim_schedule *schedule,
                  int op);
    /* Distances and sizes of the messages of halving-doubling. */
    void (*halving)(sim_phase *p);
} sim_hooks;

struct sim_world {
    const sc_workload *w;
    const sc_system *sys;
    const sc_network *net;
    const sc_pool *pool;
    const sc_simulate_opts *o;
    const sc_rules *rules;
    sim_hooks hooks;
    sc_arena *a;
    sc_err *err;
    sc_status status; /* of the first error while running */
    uint32_t n_dims, n_npus;
    sim_dim dim[SC_HW_DIMS];
    uint32_t n_ranks; /* simulated */
    sim_rank *rank;   /* [n_ranks] */
    uint32_t *index;  /* [w->n_ranks] simulated rank that stands for it */
    bool symmetric;   /* each simulated rank represents its class: */
    uint32_t *representative; /* [n_ranks] the rank it is */
    sim_queue q;
    uint64_t n_events, n_messages, n_tasks;
    sc_time endpoint;
    uint32_t queue_limit;        /* streams that run at once in a queue */
    uint32_t comm_slots;         /* communications of a rank at once */
    sc_map comms;                /* sim_comm */
    sim_comm **by_group;         /* [n_groups + n_jobs] */
    struct sim_machine *machine; /* NULL: links of the dimensions */
    struct sim_pairs *pairs;
    uint32_t warned; /* bit per SIM_WARN_* */
    const char *warnings;
    const char *disorder; /* ranks disagree on the order of calls */
    bool together;        /* collectives start on all members at once */
    struct sim_rendezvous_table *rendezvous;
    struct sim_memory *memory;
    bool served; /* messages queue: on links, or at ports */
    bool store_and_forward;
    struct sim_tier *tier; /* of a pool in tiers, else NULL */
    uint64_t n_links;
    sim_link *link; /* [n_links] */
    sc_time *port;  /* without links, for switches that reduce: when each is
                       free, [n_dims * n_npus * 2] */
    struct sim_loads *loads;    /* loads of links between ports; NULL: not
                                   counted */
    struct sim_trial *trial;    /* this world is a trial of a schedule, or
                                   NULL */
    struct sim_choice *choices; /* dimension orders that were found */
    sc_blocks blocks;
    uint64_t scratch[64]; /* see sim_mem_alloc() */
};

/* Zeroed memory that can be freed.  If there is no memory, the world's status
 * is an error, and the run ends before its next event. Until then requests of
 * up to 512 bytes get the same scratch block, which may be written but must not
 * be searched; larger requests get NULL. */
void *sim_mem_alloc(sim_world *w, size_t bytes);
void sim_mem_free(sim_world *w, void *p, size_t bytes);

/* queue */
void sim_push(sim_world *w, sim_event *e, sc_time due);

/* `rank` does `kind` after `delay`; `what`, `size`, `task` are its data. */
void sim_later(sim_world *w, sim_rank *r, sc_time delay, uint32_t kind,
               void *what, uint64_t size, uint32_t task);
void sim_loop(sim_world *w);

/* Flows outside the queue: one event of `kind` marks their next end. */
typedef struct sim_ticker {
    sc_flows *flows;
    sc_time due; /* of the latest event; -1: none */
    uint32_t kind;
} sim_ticker;

/* Schedules the end of the next flow, after all that happens now. */
void sim_ticker_resolve(sim_world *w, sim_ticker *x);
/* Returns the flows that have ended; frees `e`. */
uint32_t sim_ticker_ends(sim_world *w, sim_ticker *x, sim_event *e,
                         const sc_flow_end **end);
/* Nanoseconds as a duration under the rules. */
sc_time sim_ns(const sim_world *w, double ns);

/* Adds a line to the result's warnings; each `what` is reported once. */
enum {
    SIM_WARN_SPLITS,
    SIM_WARN_ALGORITHM, /* one per sc_coll */
    SIM_WARN_UNFIT = SIM_WARN_ALGORITHM + SC_N_CCL_OPS,
    SIM_WARN_ROOTED,
    SIM_WARN_ORDER,
    SIM_WARN_UNRECEIVED,
    SIM_WARN_LINKS
};

void sim_warn(sim_world *w, uint32_t what, const char *fmt, ...)
    SC_PRINTF(3, 4);

/* The position of errors in a rank's trace: its file name, written to `buf`,
 * which sc_error() copies. */
#define SIM_PATH 160
sc_pos sim_rank_pos(const sc_workload *w, uint32_t rank, char *buf,
                    size_t size);

/* deadlock.c: who waits for whom when no event is left */
enum {
    SIM_WAITS_SEND,    /* a receive, for a message */
    SIM_WAITS_RECEIVE, /* a send, for the receiver to ask for it */
    SIM_WAITS_MEMBER,  /* a collective, for `on` to join */
    SIM_WAITS_MESSAGES /* a collective that all have begun */
};

typedef struct sim_waiting {
    uint32_t rank, task, on; /* `task` of `rank` has started */
    uint32_t kind, tag;
    uint64_t size;
} sim_waiting;

typedef void sim_note(void *ctx, const sim_waiting *is);
void sim_pair_waiting(sim_world *w, sim_note *note, void *ctx);
/* At the end of a run: warns of messages that nobody received. */
void sim_pair_unreceived(sim_world *w);
void sim_rendezvous_waiting(sim_world *w, sim_note *note, void *ctx);
void sim_coll_waiting(sim_world *w, sim_note *note, void *ctx);
/* Fills n_waits, wait and n_cycle; the world is not symmetric. */
sc_status sim_deadlock(sim_world *w, sc_simulate_result *out);

/* symmetry.c: fills n_ranks, index, symmetric */
sc_status sim_symmetry(sim_world *w);

/* task.c */
sc_status sim_tasks_init(sim_world *w);
void sim_task_begin(sim_world *w, sim_rank *r); /* at time 0 */
void sim_task_done(sim_world *w, sim_rank *r, uint32_t task);
void sim_task_starts(sim_world *w, sim_rank *r,
                     uint32_t task); /* a collective, after SIM_RENDEZVOUS */
void sim_task_resolve(sim_world *w,
                      sim_rank *r); /* slots may have become free */
/* A recorded duration, at least the smallest one there is. */
sc_time sim_recorded(const sim_world *w, sc_time duration);
void sim_heap_push(sim_world *w, sim_heap *h, uint32_t task);
uint32_t sim_heap_pop(sim_heap *h);

/* rendezvous.c: one start for all members */
typedef struct sim_rendezvous sim_rendezvous;
sc_status sim_rendezvous_init(sim_world *w);
bool sim_needs_rendezvous(const sim_world *w, const sc_task_list *t,
                          uint32_t task);
void sim_rendezvous_arrive(sim_world *w, sim_rank *r, uint32_t task);
/* The number of free slots has changed. */
void sim_rendezvous_grant(sim_world *w, sim_rank *r);
/* Grants slots, after all else that happens at this time. False: there were
 * none to grant. */
bool sim_rendezvous_resolve(sim_world *w);
bool sim_rendezvous_resolving(const sim_world *w);
bool sim_rendezvous_yields(const sim_world *w, const sim_rank *r,
                           uint32_t task);

/* chunk_schedule.c, stream.c */
/* Bit per dimension along which a collective of all ranks moves. */
uint32_t sim_mask_of(const sim_world *w, const sc_task_list *t, uint32_t task);
/* The one algorithm of a subgroup: that of the dimension in which it lies, or a
 * ring. */
/* Whether a subgroup spans several dimensions as a grid, and its members along
 * each. */
bool sim_is_grid(const sim_world *w, const uint32_t *rank, uint32_t n,
                 uint32_t *along);
sc_ccl sim_subgroup_ccl(const sim_world *w, const uint32_t *rank, uint32_t n,
                        const sc_ccl_list *l);
bool sim_is_custom(const sim_world *w, const sc_task_list *t, uint32_t task);
uint32_t sim_root_of(const sc_task_list *t, uint32_t task); /* 0: has none */
sim_coll *sim_coll_new(sim_world *w, sim_comm *c, sim_schedule *schedule);
void sim_coll_join(sim_world *w, sim_coll *c, sim_rank *r, uint32_t live,
                   uint32_t task);
/* The open collective `ordinal` of a communicator. */
sim_coll *sim_coll_at(sim_world *w, sim_comm *c, uint32_t ordinal,
                      sim_schedule *schedule);
/* One member begins the collective; `member` is its index among the simulated
 * ones. */
void sim_coll_begin(sim_world *w, sim_coll *c, sim_rank *r, uint32_t member,
                    uint32_t task);
/* The core's own hooks. */
void sim_schedule_split(sim_world *w, const sim_comm *c, sim_schedule *schedule,
                        int op);
void sim_plan_halving(sim_phase *p);
void sim_stream_queue(const sim_world *w, sim_stream *s, uint32_t phase);

/* comm.c */
/* Place of a rank in a dimension. */
static inline uint32_t sim_coordinate(const sim_dim *d, uint32_t rank)
{
    return rank / d->stride % d->size;
}

/* The algorithm's collective for one of a trace; -1: it has none. */
int sim_op_of(uint8_t coll);

/* A broadcast that takes the time which the trace recorded. */
static inline bool sim_is_replayed(const sim_world *w, const sc_task_list *t,
                                   uint32_t task)
{
    return w->rules->broadcast_replayed && t->coll[task] == SC_BROADCAST;
}

/* The algorithm that a system names for one node; NULL: none. */
const sc_ccl *sim_node_ccl(const sc_system *s, uint64_t id);
sim_comm *sim_comm_of(sim_world *w, sim_rank *r, uint32_t task);
uint32_t sim_comm_rank(const sim_world *w, const sim_comm *c, uint32_t member);
uint32_t sim_comm_member(const sim_world *w, const sim_comm *c, uint32_t rank);
sim_schedule *sim_schedule_of(sim_world *w, sim_rank *r, sim_comm *c,
                              uint32_t task);

/* A schedule in the making. */
typedef struct sim_builder {
    sim_schedule *schedule;
    const sc_ccl_list *list;
    uint32_t n_dims; /* of the list: logical dimensions */
    uint64_t size;   /* of the chunk so far */
    const sim_comm *comm;
} sim_builder;

/* Bytes of a chunk after a phase. */
uint64_t sim_phase_leaves(const sim_phase *p);
bool sim_builder_active(const sim_builder *d, uint32_t dim);
/* Adds a phase along `dim`; `queue_half` as in sim_phase. */
void sim_builder_pass(sim_world *w, sim_builder *d, uint32_t dim, int op,
                      int queue_half);

/* order.c: dimension orders of chunks */
typedef struct sim_trial {
    sim_schedule *schedule;
    uint32_t *start_order;     /* of the schedule, once it is known */
    uint32_t next[SC_HW_DIMS]; /* start positions assigned so far */
} sim_trial;

/* Gives the schedule of a task other dimension orders than the ascending one,
 * if the system file asks for them. */
void sim_order_schedule(sim_world *w, sim_builder *d, int op);
/* The schedule of a collective that starts now on all members: `schedule`, or
 * another one of the same chunks that takes the communicator's open collectives
 * into account. */
sim_schedule *sim_order_now(sim_world *w, const sim_comm *c,
                            sim_schedule *schedule);
/* Whether `s` is queued behind `other`, which stands behind `last`. */
bool sim_order_behind(const sim_world *w, const sim_stream *s,
                      const sim_stream *other, const sim_stream *last);

/* trial.c: the time that a collective takes by a schedule if all its members
 * start at once and nothing else runs; SC_TIME_MAX: unknown. Records the start
 * order of the schedule. Without `must`, expensive trials are skipped. */
sc_time sim_order_try(sim_world *w, sim_schedule *p, uint32_t mask, bool must);
/* Records that a stream starts a phase in a trial. */
void sim_order_note(sim_world *w, const sim_stream *s);

/* workload.c: a run without its results */
sc_status sim_world_init(sim_world *w);
void sim_world_run(sim_world *w);
/* Every exchange has a kind, its peer and a size. */
sc_status sim_tasks_check(const sc_workload *w, sc_err *err);

/* stream.c: chunks in their queues */
void sim_stream_leave(sim_world *w, sim_stream *s);   /* a phase has ended */
void sim_stream_release(sim_world *w, sim_stream *s); /* releases one hold */
uint32_t sim_mailbox_size(const sim_phase *p);
uint32_t sim_place(const sim_stream *s, const sim_phase *p); /* in its ring */
sim_stream *sim_stream_of(sim_world *w, sim_coll *c, uint32_t member,
                          uint32_t index);

/* algorithm.c: messages of a phase */
void sim_alg_start(sim_world *w, sim_stream *s);
void sim_alg_receive(sim_world *w, sim_stream *s);
void sim_bundle(sim_world *w, sim_stream *s, bool out, bool reduce, bool back,
                uint64_t size);
void sim_bundle_call(sim_world *w, sim_rank *r, sim_call *c);

/* rooted.c: collectives with a root, barriers */
void sim_rooted_schedule(sim_world *w, const sim_comm *c,
                         sim_schedule *schedule);
void sim_rooted_start(sim_world *w, sim_stream *s);
void sim_rooted_bundle(sim_world *w, sim_stream *s);
void sim_rooted_receive(sim_world *w, sim_stream *s);

/* transfer.c: one message of a collective */
void sim_transfer_send(sim_world *w, sim_stream *s, uint32_t to, uint64_t size);
void sim_transfer_receive(sim_world *w, sim_stream *s, uint32_t from);
void sim_transfer_arrive(sim_world *w, sim_message *m);
void sim_transfer_resume(sim_world *w, sim_deferred *e);

/* wire.c */
sc_status sim_wire_init(sim_world *w);
/* `delay`: sim_wire_time() of it. */
void sim_wire_send(sim_world *w, sim_message *m, sc_time delay);
/* The duration of a message without links, else 0. */
sc_time sim_wire_time(const sim_world *w, uint32_t src, uint32_t dst,
                      uint64_t size);
/* How long a message occupies the slowest port on its route. */
sc_time sim_wire_serial(const sim_world *w, uint32_t src, uint32_t dst,
                        uint64_t size);
void sim_wire_hop(sim_world *w, sim_message *m);
void sim_wire_free(sim_world *w, sim_link_event *f);
void sim_wire_arrive(sim_world *w, sim_message *m);
/* Claims the port of `rank` to or from its switch for `bytes`; returns when
 * they start to cross it. */
sc_time sim_wire_claim(sim_world *w, uint32_t dim, uint32_t rank, bool down,
                       uint64_t bytes);

/* in_network.c: phases that a switch performs */
sc_status sim_in_network_init(sim_world *w);
/* Whether the switch of `dim` (set to the network's dimension) performs
 * `op`. */
bool sim_in_network_can(const sim_world *w, const sim_builder *d, int op,
                        uint32_t *dim);
void sim_in_network_start(sim_world *w, sim_stream *s);
void sim_in_network_bundle(sim_world *w, sim_stream *s);
void sim_in_network_wake(sim_world *w, const sim_deferred *k);

/* loads.c: loads of inner links, if messages queue at ports only */
sc_status sim_loads_init(sim_world *w);
/* A message starts. */
void sim_loads_count(sim_world *w, const sim_message *m);
/* The time that the most loaded link needs for what it carried; its dimension
 * goes to `*dim`. */
sc_time sim_loads_most(const sim_world *w, uint32_t *dim);
/* The factor by which messages of a phase between two places occupy their ports
 * longer. */
double sim_loads_factor(sim_world *w, const sim_comm *c, const sim_phase *p,
                        uint32_t from, uint32_t to);

/* use.c: what links have carried */
uint64_t sim_links_per_rank(sc_dim_kind kind, uint32_t size);
sc_status sim_links_use(sim_world *w, sc_simulate_result *out);

/* machine.c: messages over the links of an sc_hw */
sc_status sim_machine_init(sim_world *w);
void sim_machine_send(sim_world *w, sim_message *m);
void sim_machine_hop(sim_world *w, sim_message *m);
/* Schedules the ends of flows, after all that happens now. */
void sim_machine_resolve(sim_world *w);
void sim_machine_flow(sim_world *w, sim_event *e);
sc_status sim_machine_use(sim_world *w, sc_simulate_result *out);

/* pair.c: sends and receives of tasks */
sc_status sim_pair_init(sim_world *w);
typedef struct sim_pair sim_pair;
typedef struct sim_pairs sim_pairs;

typedef struct sim_pair_key {
    const void *space; /* owner of the tags; NULL: tasks */
    uint64_t size;
    uint32_t src, dst, tag;
} sim_pair_key;

uint32_t sim_tag(uint32_t tag); /* tags are counted modulo 5e8 */
void sim_pair_send(sim_world *w, sim_pair_key key, void *owner, uint32_t task);
void sim_pair_receive(sim_world *w, sim_pair_key key, void *owner,
                      uint32_t task);
void sim_pair_arrive(sim_world *w, sim_message *m);
void sim_pair_resume(sim_world *w, sim_deferred *k);

/* custom.c: collectives whose messages are in a trace */
sc_workload *sim_custom_read(sim_world *w, const char *prefix, uint32_t n);
void sim_custom_start(sim_world *w, sim_stream *s);
void sim_custom_done(sim_world *w, void *custom, uint32_t task);

/* bus.c: the shared memory bus */
void sim_bus_request(sim_world *w, sim_stream *s, bool out, bool reduce,
                     bool back, uint64_t size);
void sim_bus_call(sim_world *w, sim_rank *r, sim_call *c);

/* pool.c: remote memory */
sc_status sim_pool_init(sim_world *w);
void sim_pool_issue(sim_world *w, sim_rank *r, uint32_t task);
void sim_pool_next(sim_world *w, sim_call *c);

/* tier.c: remote memory in tiers */
sc_status sim_tier_init(sim_world *w);
void sim_tier_issue(sim_world *w, sim_rank *r, uint32_t task);
/* Schedules the next end, after all that happens at this time. */
void sim_tier_resolve(sim_world *w);
void sim_tier_tick(sim_world *w, sim_event *e);
/* Called when no event is left; true if some transfer can go on. */
bool sim_tier_release(sim_world *w);

#endif
