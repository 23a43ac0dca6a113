/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - reads data/hw/devices, which has one file per device. */
#include "hw/device.h"

#include "base/base.h"
#include "hw/hw_arch.h"
#include "hw/names.h"
#include "hw/read.h"

#include <math.h>
#include <string.h>

const char *const sc_precision_names[] = {"fp32", "tf32", "fp16", "bf16",
                                          "fp8",  "fp4",  "int8", NULL};

double sc_precision_bytes(sc_precision p)
{
    static const double bytes[SC_N_PRECISIONS] = {4, 4, 2, 2, 1, 0.5, 1};
    return bytes[p];
}

double sc_value_bytes(sc_precision p)
{
    return fmax(2, sc_precision_bytes(p));
}

/* The numbers of a file; every number is read as a double first. */
typedef struct raw_device {
    const char *name, *title, *vendor, *arch, *node, *like;
    const sc_node *sources;
    double peak[SC_N_PRECISIONS], vector_flops;
    double mem_bytes, mem_bw, l2_bytes;
    int64_t units, links, array;
    double clock_hz, link_bw, host_bw, power_w, chip_fraction;
} raw_device;

#define WORD(key, field, about)                                                \
    {                                                                          \
        .name = key, .type = SC_T_STRING,                                      \
        .offset = offsetof(raw_device, field), .help = about, .required = true \
    }
#define NUMBER(key, field, kind, lo, hi, must, about)                \
    {                                                                \
        .name = key, .type = SC_T_QUANTITY, .unit = kind,            \
        .offset = offsetof(raw_device, field), .min = lo, .max = hi, \
        .help = about, .required = must                              \
    }
#define WHOLE(key, field, lo, about)                                          \
    {                                                                         \
        .name = key, .type = SC_T_INT, .offset = offsetof(raw_device, field), \
        .min = lo, .max = 1e6, .help = about, .required = true                \
    }
#define PEAK(key, p)                                   \
    NUMBER(key, peak[p], SC_U_FLOPS, 1e9, 1e20, false, \
           "dense peak of the fastest unit")

static const sc_key device_keys[] = {
    WORD("name", name, "the name in the catalogue"),
    WORD("title", title, "the vendor's name"),
    WORD("vendor", vendor, "nvidia, amd, ..."),
    WORD("arch", arch, "generation, whose fits apply"),
    WORD("node", node, "node of the catalogue that usually holds it"),
    {.name = "sources",
     .type = SC_T_NODE,
     .offset = offsetof(raw_device, sources),
     .help = "where the values come from"},
    PEAK("fp32", SC_FP32),
    PEAK("tf32", SC_TF32),
    PEAK("fp16", SC_FP16),
    PEAK("bf16", SC_BF16),
    PEAK("fp8", SC_FP8),
    PEAK("fp4", SC_FP4),
    PEAK("int8", SC_INT8),
    NUMBER("vector_flops", vector_flops, SC_U_FLOPS, 1e9, 1e20, true,
           "fp32 outside matrix units"),
    NUMBER("memory", mem_bytes, SC_U_BYTES, 1e6, 1e16, true,
           "capacity, nominal"),
    NUMBER("mem_bw", mem_bw, SC_U_RATE, 1e6, 1e17, true, "memory bandwidth"),
    NUMBER("l2", l2_bytes, SC_U_BYTES, 0, 1e13, true, "last-level cache"),
    WHOLE("units", units, 1, "SMs, CUs or cores"),
    {.name = "array",
     .type = SC_T_INT,
     .offset = offsetof(raw_device, array),
     .min = 1,
     .max = 4096,
     .help = "side of a systolic array, if any"},
    NUMBER("clock", clock_hz, SC_U_HERTZ, 1e6, 1e11, true, "boost clock"),
    WHOLE("links", links, 0, "scale-up links"),
    NUMBER("link_bw", link_bw, SC_U_RATE, 0, 1e17, true,
           "all scale-up links, one direction"),
    NUMBER("host_bw", host_bw, SC_U_RATE, 0, 1e17, true,
           "bandwidth to the host, one direction"),
    {.name = "chip_fraction",
     .type = SC_T_QUANTITY,
     .unit = SC_U_NONE,
     .offset = offsetof(raw_device, chip_fraction),
     .min = 0.1,
     .max = 1,
     .help = "part of the peaks that the chip has on its first board"},
    NUMBER("power", power_w, SC_U_WATT, 0, 1e6, true, "board power limit"),
    {.name = NULL}};

static void from_raw(const raw_device *r, hw_values values, sc_device *d)
{
    *d = (sc_device){.name = r->name,
                     .title = r->title,
                     .vendor = r->vendor,
                     .arch = r->arch,
                     .node = r->node,
                     .like = r->like,
                     .vector_flops = r->vector_flops,
                     .mem_bytes = (uint64_t)llround(r->mem_bytes),
                     .mem_bw = r->mem_bw,
                     .l2_bytes = (uint64_t)llround(r->l2_bytes),
                     .units = (uint32_t)r->units,
                     .array = (uint32_t)r->array,
                     .chip_fraction =
                         r->chip_fraction > 0 ? r->chip_fraction : 1,
                     .clock_hz = r->clock_hz,
                     .links = (uint32_t)r->links,
                     .link_bw = r->link_bw,
                     .host_bw = r->host_bw,
                     .power_w = r->power_w,
                     .n_values = values.n,
                     .values = values.v};
    for (int p = 0; p < SC_N_PRECISIONS; p++) d->peak[p] = r->peak[p];
}

sc_status hw_device_read(const sc_embedded *file, sc_arena *a,
                         const sc_device **out, sc_err *err)
{
    raw_device *r = SC_NEW(a, raw_device);
    sc_device *d = SC_NEW(a, sc_device);
    hw_values values;
    const sc_node *map;
    if (r == NULL || d == NULL) return sc_error_nomem(err);
    SC_TRY(hw_embedded(file, &map, &values, a, err));
    SC_TRY(sc_schema_read(device_keys, map, r, NULL, a, err));
    from_raw(r, values, d);
    *out = d;
    return SC_OK;
}

sc_status hw_device_find(const char *name, sc_pos pos, sc_arena *a,
                         const sc_device **out, sc_err *err)
{
    hw_name found;
    if (hw_scaled_base(name) > 0)
        return hw_device_scaled(name, pos, a, out, err);
    SC_TRY(hw_name_find(name, 1u << HW_DEVICE, pos, a, &found, err));
    return hw_device_read(found.file, a, out, err);
}

/* ---- a device of one's own */

static const sc_key like_key = {
    .name = "like",
    .type = SC_T_STRING,
    .offset = offsetof(raw_device, like),
    .help = "the catalogue's nearest device: its generation's fits apply, and "
            "its figures where none are given",
    .required = true};

/* The keys of the catalogue, all of which may be omitted. */
static void own_keys(sc_key *keys)
{
    size_t n = SC_COUNT(device_keys) - 1;
    memcpy(keys, device_keys, n * sizeof *keys);
    for (size_t i = 0; i < n; i++) keys[i].required = false;
    keys[n] = like_key;
    keys[n + 1] = (sc_key){.name = NULL};
}

static raw_device to_raw(const sc_device *d)
{
    raw_device r = {.name = "own-device",
                    .title = "a device of one's own",
                    .vendor = d->vendor,
                    .arch = d->arch,
                    .node = d->node,
                    .like = d->name,
                    .vector_flops = d->vector_flops,
                    .mem_bytes = (double)d->mem_bytes,
                    .mem_bw = d->mem_bw,
                    .l2_bytes = (double)d->l2_bytes,
                    .units = d->units,
                    .array = d->array,
                    .chip_fraction = d->chip_fraction,
                    .clock_hz = d->clock_hz,
                    .links = d->links,
                    .link_bw = d->link_bw,
                    .host_bw = d->host_bw,
                    .power_w = d->power_w};
    for (int p = 0; p < SC_N_PRECISIONS; p++) r.peak[p] = d->peak[p];
    return r;
}

/* All peaks have to be given, because missing ones would be those of another
 * chip. */
static sc_status own_peaks(const sc_node *map, const sc_key *keys,
                           const sc_given *given, raw_device *r, sc_err *err)
{
    bool any = false;
    for (int p = 0; p < SC_N_PRECISIONS; p++)
        any = any || sc_given_has(given, keys, sc_precision_names[p]);
    if (!any) return SC_OK;
    for (int p = 0; p < SC_N_PRECISIONS; p++)
        if (!sc_given_has(given, keys, sc_precision_names[p])) r->peak[p] = 0;
    r->chip_fraction = 1;
    if (sc_given_has(given, keys, "vector_flops")) return SC_OK;
    r->vector_flops = r->peak[SC_FP32];
    if (r->vector_flops > 0) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_MISSING, map->pos,
                    "give fp32 or vector_flops, which bound element-wise work",
                    "the device has only peaks of matrix units");
}

static sc_status own_arch(const sc_node *map, const char *arch, sc_arena *a,
                          sc_err *err)
{
    const char **names = NULL, *all = NULL;
    uint32_t n = 0;
    if (sc_arch_of(arch)->name) return SC_OK;
    SC_TRY(sc_hw_list(true, a, &names, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        const sc_device *d = NULL;
        SC_TRY(hw_device_find(names[i], map->pos, a, &d, err));
        if (all && strstr(all, d->arch)) continue;
        all = sc_sprintf(a, "%s%s%s", all ? all : "", all ? ", " : "", d->arch);
    }
    return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME,
                    sc_node_get(map, "arch")->pos, all,
                    "no fits of a generation \"%.40s\"", arch);
}

sc_status hw_device_own(const sc_node *map, hw_values values, sc_arena *a,
                        const sc_device **out, sc_err *err)
{
    sc_key keys[SC_COUNT(device_keys) + 1];
    sc_given given = {{0, 0, 0, 0}};
    raw_device first = {0};
    const sc_device *like = NULL;
    sc_device *d = SC_NEW(a, sc_device);
    if (d == NULL) return sc_error_nomem(err);
    own_keys(keys);
    SC_TRY(sc_schema_read(keys, map, &first, &given, a, err));
    SC_TRY(hw_device_find(first.like, sc_node_get(map, "like")->pos, a, &like,
                          err));
    raw_device r = to_raw(like);
    SC_TRY(sc_schema_read(keys, map, &r, NULL, a, err));
    SC_TRY(own_peaks(map, keys, &given, &r, err));
    SC_TRY(own_arch(map, r.arch, a, err));
    r.like = like->name;
    from_raw(&r, values, d);
    *out = d;
    return SC_OK;
}

const sc_device *hw_own_device(const hw_own *own, const char *name)
{
    for (; own != NULL; own = own->next)
        if (strcmp(own->device->name, name) == 0) return own->device;
    return NULL;
}

sc_status sc_device_find(const char *name, sc_arena *a, const sc_device **out,
                         sc_err *err)
{
    return hw_device_find(name, sc_pos_none(), a, out, err);
}
