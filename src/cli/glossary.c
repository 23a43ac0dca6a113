/* SPDX-License-Identifier: Apache-2.0 */
/* glossary.c - the terms that reports print, and the effects that stepcast
 * does not model. docs/glossary.md shows this table. */
#include "cli/explain.h"

#include <stddef.h>

const cli_word cli_glossary[] = {
    /* the parallelization */
    {"TP", NULL,
     "tensor parallelism: the products of a layer are split over this many "
     "ranks, which exchange activations"},
    {"PP", NULL,
     "pipeline parallelism: the layers are cut into stages on this many ranks, "
     "which pass activations to the next"},
    {"DP", NULL,
     "data parallelism: this many replicas of the model, each with its own "
     "samples; gradients are reduced over them"},
    {"CP", NULL,
     "context parallelism: the tokens of a sample are split over this many "
     "ranks; attention exchanges keys and values"},
    {"EP", NULL,
     "expert parallelism: the experts of a layer are spread over this many "
     "ranks; tokens travel to their experts and back"},
    {"VP", NULL,
     "virtual pipeline stages on each pipeline rank (interleaving): more of "
     "them shorten the bubble and add transfers"},
    {"SP", NULL,
     "sequence parallelism: between the split products of TP the tokens are "
     "split, which saves memory for activations"},
    {"ZeRO-1", NULL, "optimizer states are sharded over the replicas"},
    {"ZeRO-2", NULL, "optimizer states and gradients are sharded"},
    {"ZeRO-3", NULL,
     "optimizer states, gradients and weights are sharded; each layer's "
     "weights are gathered before it runs (FSDP)"},
    {"FSDP", NULL, "fully sharded data parallelism: see ZeRO-3"},
    {"HSDP", NULL,
     "hybrid sharded data parallelism: states are sharded within groups of "
     "this many replicas and copied across groups"},
    {"mesh", NULL,
     "the named axes over which a strategy splits operators and tensors; the "
     "product of their sizes is the number of devices"},
    {"stage", NULL, "the layers of one pipeline rank, or of one part of it"},
    {"rank", NULL, "one process of a job, with one device"},
    {"micro-batch", NULL,
     "samples that pass through the model at once on one replica"},
    {"global batch", NULL,
     "samples of one optimizer step: micro-batch x micro-batches x replicas"},
    {"sequence", NULL, "tokens of one sample"},
    {"recompute", NULL,
     "tensors that the backward pass computes again instead of keeping them: "
     "none, selective (attention), full (whole layers), ops (named operators)"},
    {"1f1b", NULL,
     "pipeline schedule: each stage alternates one forward and one backward "
     "pass"},
    {"gpipe", NULL,
     "pipeline schedule: all forward passes, then all backward passes"},
    {"interleaved", NULL, "pipeline schedule: 1F1B over virtual stages (VP)"},
    {"zb-h1", NULL,
     "zero-bubble pipeline schedule: weight gradients are computed late, where "
     "a stage would be idle, in the memory of 1F1B"},
    {"zb-v", NULL,
     "zero-bubble schedule in which each rank has two stages, in the shape of "
     "a V"},
    {"dualpipe", NULL,
     "bidirectional pipeline schedule: two replicas of each stage, fed from "
     "both ends"},
    /* a prediction */
    {"fits?", NULL,
     "whether the peak memory of the fullest device is at most the memory of a "
     "device, with a probability of 25 % or more; if NO, the exit code is 1"},
    {"tight", NULL,
     "the run fits with this probability, from the errors of measured peaks: "
     "the prediction is close to the memory of a device"},
    {"memory (GiB)", NULL,
     "peak memory of the fullest device and its parts, in units of 2^30 bytes"},
    {"reserve", NULL,
     "memory that the allocator holds in addition to the allocated memory"},
    {"step time", NULL,
     "time of one optimizer step: all micro-batches, the exchange of "
     "gradients, the update"},
    {"interval", NULL,
     "80 % interval: for about 80 % of runs the measured step time lies in it; "
     "it comes from the errors of runs that were left out of the fit, and it "
     "is widened if no measured run of this device and program is in the fit"},
    {"throughput", NULL, "tokens or samples per second"},
    {"model FLOP/s", NULL,
     "floating-point operations that the model needs, without recomputation, "
     "per second and device"},
    {"MFU", NULL,
     "model FLOP utilization: model FLOP/s divided by the dense peak of the "
     "precision in use"},
    {"HFU", NULL,
     "hardware FLOP utilization: as MFU, with recomputed operations counted"},
    {"time goes to", NULL,
     "parts of the step time of the slowest rank; their sum is the step time"},
    {"exposed TP", NULL,
     "tensor-parallel communication during which the device computes "
     "nothing"},
    {"exposed PP", NULL, "the same for transfers between pipeline stages"},
    {"exposed DP", NULL,
     "the same for reductions of gradients and gathers of sharded weights"},
    {"exposed CP", NULL, "the same for context parallelism"},
    {"exposed EP", NULL, "the same for the exchange of tokens with experts"},
    {"memory offload", NULL,
     "the device waits for copies to and from the host's or expanded memory"},
    {"expanded", NULL,
     "optimizer states, weights and activations of a device in expanded memory "
     "(docs/memory.md)"},
    {"energy", NULL,
     "computed from power limits and the fraction of time in which devices are "
     "busy; not measured"},
    {"power", NULL,
     "average power of the machine in a step, and the fractions of its "
     "devices, "
     "hosts, network adapters, switches and links (transceivers)"},
    {"cost", NULL,
     "--price x devices x time; with --purchase the part of the service life "
     "of "
     "the machine and electricity"},
    {"purchase", NULL,
     "with --purchase: what the machine costs, by its parts; links are both "
     "transceivers and the cable"},
    {"CO2e", NULL, "energy x --grid-intensity"},
    {"whole run", NULL,
     "training on all tokens of --tokens: time, device-hours, energy, cost"},
    {"as published", NULL,
     "the whole run if it takes as much longer as published runs did, which "
     "contain evaluations, restarts by hand and configurations that are not "
     "the "
     "fastest (data/fit/whole-run.yml)"},
    {"goodput", NULL,
     "with --failures: the fraction of the time of a run in which it trains "
     "and keeps what it learned; the line below has where the rest goes"},
    {"slow nodes", NULL,
     "steps that take longer because the whole job waits for slow nodes"},
    {"checkpoints", NULL, "time for which checkpoints stop training"},
    {"lost work", NULL,
     "training since the last complete checkpoint, which a failure undoes"},
    {"restarts", NULL,
     "from a failure until training goes on: detection, replacement of the "
     "node, start, loading the checkpoint (--restart)"},
    {"planned stops", NULL,
     "stops for maintenance or changes, after a checkpoint, with their "
     "restarts"},
    {"waits for repair", NULL,
     "more nodes are in repair than there are spare nodes (--spares)"},
    {"failures", NULL,
     "expected number of failures of a run, and the mean time between them"},
    {"faster with", NULL,
     "options to append, the change of the step time and the peak memory: at "
     "most three small changes that make the step faster"},
    {"smaller with", NULL,
     "the same for a job that does not fit: changes that need less memory"},
    {"points", NULL,
     "configurations of a search: those whose step was computed, those that a "
     "lower bound of their step shows to be slower than what was found, and, "
     "below, those that are not possible"},
    {"host memory", NULL,
     "if nothing fits: the fewest options with which host memory keeps "
     "optimizer states, activations or weights, so that something does"},
    {"machines", NULL,
     "of a search with --machine: all, those whose points were searched, and "
     "those that can't be built or do not divide the job"},
    {"budget", NULL,
     "--cluster-budget: machines that need more power or money are left out; "
     "power is that of devices at their limit and of hosts, times the PUE"},
    {"not proposed", NULL,
     "nodes of the catalogue that --cluster-budget leaves out because their "
     "power or price is not known"},
    {"largest", NULL,
     "the largest machine within --cluster-budget, and the largest number of "
     "its nodes over which the job can be divided"},
    {"less and more", NULL,
     "--tornado: the change of the fastest step if a property of the machine "
     "is 20 % less or more, searched again and with the same configuration"},
    {"mix", NULL,
     "--mix: number of jobs, and of machines on which all of them run, or of "
     "nodes that they have"},
    {"slowdown", NULL,
     "simulate --mix: a step beside the other jobs over the same step alone"},
    {"predict", NULL,
     "simulate --mix: the step that `stepcast predict` gives for as many "
     "nodes"},
    {"packed", NULL, "alone on the first nodes of the machine"},
    {"alone", NULL,
     "alone on the job's own nodes, by the links of the machine"},
    {"beside", NULL,
     "the median step while all jobs run; they share links only"},
    {"regret", NULL,
     "of a job of --mix: how much worse its score is on the best machine for "
     "all than on its own best one"},
    {"best machine", NULL,
     "proved: no machine is better than those that are printed; else by how "
     "much one can at most be"},
    {"not reached", NULL, "points that a search had no time for (--budget)"},
    {"optimal", NULL,
     "proved: every point was computed or excluded; else by how much another "
     "point can at most be faster"},
    {"options", NULL,
     "of a configuration: what to append to the options of the search"},
    {"objective", NULL,
     "what a search makes small or large, if it is not the step time"},
    {"fewest devices", NULL,
     "the smallest number of devices on which some configuration meets "
     "--until and --cost-at-most"},
    {"the front", NULL,
     "configurations than which no other one is at least as good in time, "
     "memory, devices and money; with --pareto machines, in time, power and "
     "price, each with its fastest configuration"},
    {"out of memory?", NULL,
     "what to change first if a configuration runs out of memory although it "
     "should fit, with the step time and the memory after it"},
    {"than the next", NULL,
     "what makes a configuration better than the next one of the list, which "
     "is of another kind: the parts of the step time that differ most"},
    {"how sure", NULL,
     "the probability that a configuration is the best of those that are "
     "printed, and how much longer its step is expected to be than the "
     "shortest of them (docs/search.md)"},
    {"choose", NULL,
     "the configuration whose expected step is the shortest, if own runs make "
     "it another one than the first"},
    {"to settle it", NULL,
     "configurations whose measurement would lower the expected regret most, "
     "one after the other"},
    {"assumed", NULL,
     "inputs that were not given, with the values assumed for them and the "
     "reasons"},
    {"warning", NULL, "reasons why the result may be less accurate than usual"},
    {"cross-check", NULL,
     "relative difference of the other engine's step time"},
    {"fidelity", NULL,
     "how the network is modelled: analytic (a formula for each collective), "
     "chunk (messages queue on links), flow (messages share links)"},
    {"engine", NULL,
     "event runs every operation of the step; fast composes layers by the "
     "schedule"},
    /* comparison with a measurement */
    {"measured", NULL, "the step time of --measured, or the median of its log"},
    {"log", NULL, "the steps of the log of --measured that are used"},
    {"memory", NULL, "the largest memory in the log of --measured"},
    {"own runs", NULL,
     "measured runs of --anchor or of a profile by calibrate --runs, which "
     "move parameters and levels (docs/anchors.md)"},
    {"they move", NULL,
     "parameters, the network between nodes, and levels (factors on steps) of "
     "the site, the software release and the device, with the standard error "
     "of the logarithm before and after"},
    {"levels", NULL,
     "the factor on this step that own runs give beyond the parameters, and "
     "that on the logarithms of the interval's ends"},
    {"gap", NULL,
     "difference between the measured and the predicted step, and the changes "
     "of one part or one rate that would explain all of it"},
    {"sensitive to", NULL,
     "the parameters of the cost model that move the step time most"},
    {"traces", NULL, "the files that --emit-chakra or --record wrote"},
    {"communicators", NULL, "groups of ranks that exchange data in the traces"},
    {"network", NULL, "the network file beside the traces"},
    {"replay", NULL, "the command that simulates the recorded traces"},
    /* a simulation */
    {"makespan", NULL, "time from the start to the end of the last rank"},
    {"exposed communication", NULL,
     "a communication is in flight and the device computes nothing"},
    {"exposed comm", NULL, "see exposed communication"},
    {"remote memory", NULL,
     "the device waits for loads and stores of remote memory"},
    {"idle", NULL, "the device waits for its host"},
    {"finish", NULL, "time at which the rank ends"},
    {"because", NULL, "reason why the last rank ends last"},
    {"compatible", NULL,
     "result of ASTRA-sim's analytical backend for the same files"},
    {"jobs", NULL, "times at which several jobs end"},
    {"links", NULL,
     "for each dimension: the links that carried data, the bytes, and the mean "
     "fraction of the time in which the links were busy"},
    {"busiest", NULL, "the links that were busy longest"},
    {"simulated", NULL,
     "number of messages of the run; ranks that do the same are simulated "
     "once. Of a run with failures: the time of random runs"},
    /* a replay */
    {"replayed", NULL,
     "the time of a rank's steps in the replay; measured: in the trace"},
    {"off", NULL, "replayed / measured - 1"},
    {"with", NULL, "the changes that are simulated"},
    {"which gives", NULL,
     "the step with the changes, against the replay without them"},
    {"host-bound", NULL,
     "the device runs nothing, and its next kernel waits for its launch"},
    {"clocks", NULL,
     "how far the ends of one collective are apart on different ranks after "
     "their clocks are aligned: the error of times between ranks"},
    {"critical path", NULL,
     "the chain of work, from the begin to the end, in which each part starts "
     "when the one before ends; its length is the step, and only what is on it "
     "makes the step shorter"},
    {"findings", NULL,
     "what the step would gain without a cause, each simulated again; gains do "
     "not add up"},
    {"against", NULL,
     "of a replay: the difference from other traces, by what their critical "
     "paths consist of; the parts add up to it.  Of a prediction: a measured "
     "trace beside it, by pass, kind of kernel and layer"},
    {"holders", NULL,
     "what was allocated and not freed when memory was at its peak, by the "
     "operators that allocated it"},
    {"no kernel runs", NULL,
     "time of a step in which the device waits for the host or for other "
     "devices, or only copies"},
    /* an emulation */
    {"real rank", NULL, "a rank that runs the program"},
    {"emulated rank", NULL,
     "a rank that runs no program; its arrivals at collectives and its data "
     "are modelled"},
    {"waiting", NULL,
     "time of a step in which the program only waited for its collectives"},
    {"in flight", NULL,
     "time of a step with at least one collective in flight"},
    {"computation", NULL,
     "time of a step in which the program did not wait for its collectives"},
    {"steps", NULL, "repetitions of one sequence of operations"},
    {"operation", NULL, "a collective, or a message"},
    {"group", NULL, "members of the communicator of an operation"},
    {"calls", NULL, "how often real ranks called the operation"},
    {"modelled", NULL,
     "time from when all members have arrived to the end of the operation"},
    {"waited", NULL, "time in which the program only waited for it"},
    {"overhead", NULL, "time that the emulation itself took"},
    {"virtual clock", NULL,
     "CPU time of the program plus modelled waits; the real clock is that of "
     "the machine"},
    /* a validation */
    {"skip", NULL, "rows that could not be predicted or compared"},
    {"median", NULL, "median of the absolute errors"},
    {"p90", NULL, "90th percentile of the absolute errors"},
    {"tau", NULL, "see kendall_tau"},
    {"worst", NULL, "see regret_max"},
    {"mem %", NULL, "see memory_mape"},
    {"mem max", NULL, "see memory_max_ape"},
    {"in 80%", NULL,
     "percentage of rows whose measurement lies in the interval"},
    {0},
};

const char *const cli_not_modelled[] = {
    "inference", "serving", "prefill", "decode", "rlhf",       "grpo",
    "ppo",       "dpo",     "rollout", "qlora",  "congestion", NULL,
};
