/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_anchor.h - own measured runs ("anchors") move parameters and levels.
 *
 * The logarithm of a measured step is that of the predicted step plus
 *   the effect of parameters, d log(step) / d log(p), with the covariance of
 *     the fit (data/fit/covariance.yml) times `parameters` squared;
 *   the effect of the network between nodes, by the fraction of the step that
 *     grows with the NICs' time;
 *   levels of the site (all own runs), of the software release, the device;
 *   what similar jobs share, falling with the distance of their traits;
 *   what only runs of the same job share; and the measurement's noise.
 * All are normal with mean 0.  Their standard deviations are in
 * data/fit/held-out.yml.  Conditioning on the anchors gives the mean of each
 * effect, and the variance that is left for a job.  docs/anchors.md describes
 * the method.
 */
#ifndef SC_COST_ANCHOR_H
#define SC_COST_ANCHOR_H

#include "cost/cost.h"

/* Derivative of the logarithm of a step by that of a parameter. */
typedef struct sc_share {
    sc_param param;
    double share;
} sc_share;

/* Names that two jobs share or not. */
typedef enum sc_trait_name {
    SC_TRAIT_RELEASE, /* software profile */
    SC_TRAIT_DEVICE,
    SC_TRAIT_PRECISION,
    SC_TRAIT_MODEL,
    SC_N_TRAIT_NAMES
} sc_trait_name;

/* Sizes whose logarithms are compared. */
typedef enum sc_trait_size {
    SC_SIZE_DEVICES,
    SC_SIZE_MODEL, /* parameters */
    SC_SIZE_SEQ,
    SC_SIZE_TOKENS, /* of a step, per device */
    SC_SIZE_MBS,
    SC_SIZE_TP,
    SC_SIZE_PP,
    SC_SIZE_CP,
    SC_SIZE_EP,
    SC_SIZE_ZERO,      /* 1 + stage */
    SC_SIZE_RECOMPUTE, /* 1 + kind */
    SC_N_TRAIT_SIZES
} sc_trait_size;

extern const char *const sc_trait_name_names[]; /* "release" ...; NULL ends */
extern const char *const sc_trait_size_names[]; /* "devices" ...; NULL ends */

/* What makes two jobs alike. */
typedef struct sc_traits {
    const char *name[SC_N_TRAIT_NAMES];
    double size[SC_N_TRAIT_SIZES]; /* at least 1 */
    uint64_t key;                  /* equal for runs of the same job */
    bool unseen;    /* no row of the fit has the device or the program */
    double network; /* fraction of the step that grows with the time of the
                         network between nodes */
    uint32_t n_shares;
    const sc_share *share; /* [n_shares] */
} sc_traits;

/* One measured run. */
typedef struct sc_anchor {
    const char *id;
    double measured_s, predicted_s; /* predicted: without anchors */
    double moved_s; /* predicted with the moved parameters; NaN: not known, then
                       sc_anchors_level() estimates it to first order */
    double noise;   /* standard deviation of log(measured) */
    sc_traits traits;
    double z; /* the logarithm of measured over what the prior and the other
                 anchors predict, in standard deviations; set by
                 sc_anchors_fit() */
} sc_anchor;

/* The parameters' covariance. */
typedef struct sc_covariance {
    uint32_t n;
    const sc_param *param; /* [n] */
    const double *of_log;  /* [n * n] */
} sc_covariance;

#define SC_ANCHORS_MAX 512

/* The noise of a measured time that states none, of its logarithm: steps of
 * published logs vary by 1 to 2 % between runs of one configuration. */
#define SC_ANCHOR_NOISE 0.015

/* An anchor that is further from what is expected than this many standard
 * deviations is reported. */
#define SC_ANCHOR_FAR 2.5

typedef struct sc_anchors {
    sc_effects effects;
    double unseen; /* factor on the interval of unseen devices, programs */
    sc_covariance cov;
    int index[SC_N_PARAMS]; /* into `cov`; -1: fixed */
    uint32_t n;
    sc_anchor *a;             /* [n] with different keys */
    double base[SC_N_PARAMS]; /* parameters before they moved */
    uint64_t base_hash;       /* sc_cost.hash before they moved */
    double move[SC_N_PARAMS]; /* of log p */
    double network;           /* of log(time of the NICs) */
    double *own;              /* [n] extra variance of far anchors */
    double *weight;           /* [n] of the levels */
    double *chol;             /* [n * n] factor of the covariance */
    double *alpha;            /* [n] that covariance's inverse times the
                                       residuals */
} sc_anchors;

/* The covariance that the built-in fit has; parameters that its file lacks are
 * independent with the standard deviation of their prior. */
sc_status sc_covariance_builtin(sc_arena *a, sc_covariance *out, sc_err *err);
/* The same from the text of such a file. */
sc_status sc_covariance_read(const char *text, size_t len, const char *file,
                             sc_arena *a, sc_covariance *out, sc_err *err);
/* The standard deviation of the logarithm of a parameter; NaN: it is fixed. */
double sc_covariance_error(const sc_covariance *c, sc_param p);

/* The standard deviation of log(measured step) of a job with these traits and
 * shares, before any own run: of parameters, the network and levels, times
 * `unseen` if no row of the fit has the device or the program. `cov` NULL: of
 * the network and levels. */
double sc_effects_deviation(const sc_effects *e, double unseen,
                            const sc_covariance *cov, const sc_traits *t);

/* What is expected before any own run; `cov` may be NULL. */
sc_anchors sc_anchors_none(const sc_effects *e, double unseen,
                           const sc_covariance *cov);

/* Conditions on a[0..n): anchors with equal keys are joined. `base` has the
 * parameters that predicted_s was computed with. Errors: more than
 * SC_ANCHORS_MAX, a time that is not positive. */
sc_status sc_anchors_fit(const sc_anchor *list, uint32_t n, const sc_cost *base,
                         const sc_covariance *cov, sc_arena *a, sc_anchors *out,
                         sc_err *err);

/* Sets `out` to the base parameters moved by the anchors, inside their
 * limits; other members stay. */
void sc_anchors_move(const sc_anchors *s, sc_cost *inout);

/* Sets moved_s of the anchor with this key. */
void sc_anchors_predicted(sc_anchors *s, uint64_t key, double step_s);

/* Distributes what the moved parameters do not explain (moved_s of every
 * anchor) over the levels. */
sc_status sc_anchors_level(sc_anchors *s, sc_arena *a, sc_err *err);

/* log of the factor on the step of a job that the levels give. */
double sc_anchors_level_of(const sc_anchors *s, const sc_traits *t);

/* log of the factor on the step from parameters and levels together, to first
 * order: what sc_anchors_move() and sc_anchors_level_of() do. */
double sc_anchors_effect(const sc_anchors *s, const sc_traits *t);

/* The standard deviation of the logarithm of a measured step over that
 * without anchors. */
double sc_anchors_narrow(const sc_anchors *s, const sc_traits *t, sc_arena *a);

/* Covariance of the logarithms of measured steps, without noise. */
double sc_anchors_cov(const sc_anchors *s, const sc_traits *x,
                      const sc_traits *y);

/* The covariance [n * n] of the logarithms of the steps of jobs, without noise,
 * that is left with these own runs. */
sc_status sc_anchors_left(const sc_anchors *s, const sc_traits *const *t,
                          uint32_t n, sc_arena *a, double *out, sc_err *err);

/* One effect of the anchors, for people. */
typedef struct sc_anchor_effect {
    const char *reason;
    const char *what;           /* "software release", "parameter" ... */
    const char *name;           /* "mlperf-nemo", "sustained_hopper" */
    double before, after;       /* a level: factor on the step, before 1 */
    double sd_before, sd_after; /* of the logarithm */
    double weight;              /* largest change of an own run's log(step) */
} sc_anchor_effect;

/* Lists the effects that moved by more than 0.1 %, the one that changes own runs
 * most first; in `a`. */
sc_status sc_anchors_list(const sc_anchors *s, sc_arena *a,
                          sc_anchor_effect **out, uint32_t *n, sc_err *err);

/* Appends what moved and the anchors, whose levels are distributed, as the text of a profile that
 * sc_cost_read() reads; `from` is written before them. */
sc_status sc_anchors_write(const sc_anchors *s, const char *from, sc_arena *a,
                           sc_text *out, sc_err *err);
#endif
