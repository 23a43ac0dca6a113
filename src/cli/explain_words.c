/* SPDX-License-Identifier: Apache-2.0 */
/* explain_words.c - fields of all documents, with unit and definition. */
#include "cli/explain.h"

const cli_word cli_words[] = {
    {"step_time_s", "s",
     "time of one optimizer step: all micro-batches, "
     "gradient exchange, optimizer, fixed part"},
    {"step_time_low_s", "s",
     "lower end of the 80 % interval: step_time_s times the 10 % quantile of "
     "measured / predicted steps of the same kind of model (dense, experts, "
     "adapters, encoder), each predicted by a fit without its family of runs; "
     "where the fit has no run of such a device or program, the widest of all "
     "kinds and wider (data/fit/held-out.yml, docs/validation.md)"},
    {"step_time_high_s", "s", "upper end of that interval: the 90 % quantile"},
    {"step_time_other_engine_s", "s",
     "the same step by the engine that was not asked for"},
    {"measured_s", "s", "what --measured gives, or the median of its log"},
    {"measured_steps", "-", "steps of the log that the median is of"},
    {"measured_spread_s", "s",
     "half the distance between the quartiles of these steps"},
    {"measured_peak", "bytes", "largest memory that the log prints"},
    {"peak_error", "fraction", "largest predicted peak / measured_peak - 1"},
    {"gap_s", "s", "measured_s - step_time_s"},
    {"gap_causes", "fraction",
     "by how much a part of the step would have to change to explain the gap "
     "alone; the largest parts first"},
    {"sensitivity", "fraction",
     "change of the step time where one parameter grows by 10 %, by the fast "
     "engine; the five largest"},
    {"samples_per_s", "1/s", "global batch / step_time_s"},
    {"tokens_per_s", "1/s", "global batch x sequence / step_time_s"},
    {"tokens_per_s_per_device", "1/s", "tokens_per_s / devices"},
    {"model_tflops_per_device", "TFLOP/s",
     "model FLOP / step_time_s / "
     "devices / 1e12; see mfu for what counts"},
    {"mfu", "fraction",
     "model FLOP/s over the dense peak of the precision "
     "computed in.  Model FLOP: 6 per parameter of matrix products and token, "
     "plus 12 x sum over layers of heads x head_dim x min(seq, window) per "
     "token, not halved for the causal mask; vocabulary projection included; "
     "a third for --forward-only"},
    {"hfu", "fraction", "as mfu, with recomputed FLOP counted again"},
    {"fits", "yes/no", "peak <= device memory on every stage"},
    {"memory_capacity_bytes", "bytes", "memory of one device"},
    {"memory_per_stage", "bytes",
     "weights + gradients + optimizer + "
     "activations + communication + other = allocated; peak adds the "
     "allocator's reserve"},
    {"time_breakdown_s", "s",
     "where the step of the slowest rank goes: compute, exposed_tp, "
     "exposed_pp, exposed_dp, exposed_cp, exposed_ep, bubble, host, "
     "memory_offload, optimizer, other; the sum is step_time_s"},
    {"weights", "bytes", "parameters as they are kept on the stage"},
    {"gradients", "bytes", "gradients as they are kept on the stage"},
    {"optimizer", "bytes or s",
     "in memory_per_stage states and master weights; in time_breakdown_s the "
     "update of the weights"},
    {"communication", "bytes", "buffers of collectives and transfers"},
    {"allocated", "bytes",
     "weights + gradients + optimizer + activations + communication + other"},
    {"peak", "bytes", "allocated, the allocator's reserve and the context"},
    {"activations", "bytes",
     "what the backward pass needs of every "
     "micro-batch in flight (34 s b h + 5 a s^2 b per layer without "
     "recomputation: Korthikanti et al. 2022), plus one layer at work"},
    {"compute", "s", "the device runs kernels of the model"},
    {"bubble", "s",
     "pipeline idle time: waiting for another stage beyond the "
     "transfer itself"},
    {"exposed_tp", "s",
     "tensor-parallel communication during which the device computes nothing"},
    {"exposed_pp", "s", "the same of transfers between pipeline stages"},
    {"exposed_dp", "s",
     "the same of gradient reductions and of gathers of sharded weights"},
    {"exposed_cp", "s", "the same of context parallelism"},
    {"exposed_ep", "s", "the same of expert parallelism"},
    {"memory_offload", "s",
     "the device waits for copies to and from the host's memory"},
    {"other", "bytes or s",
     "in memory_per_stage context, libraries and staging buffers; in "
     "time_breakdown_s the fixed part of a step: data, clipping, logging"},
    {"host", "s", "the device waits for kernels to be issued"},
    {"energy_j_per_step", "J",
     "board power limit x (idle_power + (1 - idle_power) x busy share) x "
     "devices, plus nodes, times PUE; not measured"},
    {"cost_usd_per_step", "USD", "--price x devices x step_time_s"},
    {"coverage", "fraction",
     "share of rows whose measurement lies inside their 80 % interval; "
     "`validate --leave-out family` takes the interval from the other "
     "families"},
    {"kendall_tau", "-1 to 1",
     "how well a group's rows are ranked by the prediction (Kendall's tau-b)"},
    {"regret", "fraction",
     "time lost by running the row predicted fastest instead of the one that "
     "is, among rows that differ in configuration only"},
    {"algbw_GBps", "GB/s", "bytes / time, as nccl-tests counts: 10^9 bytes"},
    {"busbw_GBps", "GB/s",
     "algbw_GBps x 2(n-1)/n for all_reduce, (n-1)/n for all_gather, "
     "reduce_scatter and all_to_all, 1 for broadcast and reduce (nccl-tests)"},
    {"algbw", "GB/s", "see algbw_GBps"},
    {"busbw", "GB/s", "see busbw_GBps"},
    {"bytes", "bytes",
     "size of a message as nccl-tests counts it: the larger of what a rank "
     "gives and what it gets; of links and tiers, what they carried"},
    {"time_us", "us", "time of one collective"},
    {"algorithm", "-",
     "how the collective is done: ring, tree, hierarchical, direct, nvls"},
    {"protocol", "-", "how NCCL sends: Simple, LL or LL128"},
    {"rows", "-", "one object per row of the tables, or per size"},
    {"groups", "-", "rows of one family on one device; device null: on all"},
    {"id", "-", "name of the row in its table"},
    {"family", "-", "rows that were measured and published together"},
    {"measured", "unit", "what the table says, in the unit of the document"},
    {"predicted", "unit", "the same as predicted"},
    {"predicted_s", "s", "step time predicted for the row"},
    {"low_s", "s", "lower end of the row's 80 % interval"},
    {"high_s", "s", "upper end of that interval"},
    {"measured_memory_bytes", "bytes", "largest memory the table says"},
    {"predicted_memory_bytes", "bytes", "the same as predicted"},
    {"reason", "-", "why the row could not be predicted or compared"},
    {"skipped", "rows", "rows that have a reason"},
    {"counted", "yes/no",
     "the row is in the errors of its group; configurations measured several "
     "times count once, with their median"},
    {"error", "fraction", "predicted / measured - 1"},
    {"mape", "fraction", "mean of the absolute value of error"},
    {"median_ape", "fraction", "median of the absolute value of error"},
    {"p90_ape", "fraction", "90th percentile of the absolute value of error"},
    {"bias", "fraction", "mean of error, with its sign"},
    {"memory_mape", "fraction",
     "mean of |predicted / measured - 1| of the largest memory"},
    {"memory_max_ape", "fraction", "largest of these"},
    {"regret_max", "fraction", "regret of the worst set of rows"},
    {"suggestions", "-",
     "the smallest changes that help, at most three: options to append to the "
     "command line, and what they then give; of transformers by the fast "
     "engine, the step times the predicted step over the fast engine's"},
    {"change", "options or fraction",
     "in suggestions options to append; in sensitivity and gap_causes a change "
     "relative to what was predicted"},
    {"assumptions", "text", "what was left out and is inferred, and how"},
    {"warnings", "text", "why a prediction may be worse than usual"},
    {"explain", "text", "--explain: rules and inferred collectives, in lines"},
    {"why", "text", "--why: every price and what made it, in lines"},
    {"part", "-", "a part of the step, as in time_breakdown_s"},
    {"parameter", "-", "a parameter; `stepcast explain` says what it is"},
    {"gap_inputs", "-",
     "peak and bandwidths of the machine that the step depends on"},
    {"input", "-", "a property of the machine"},
    {"needs", "factor",
     "factor by which it alone would have to be other for the step to take the "
     "measured time, from 1/4 to 4 and within its limits; null: none does"},
    {"config", "-",
     "every option, given or inferred; the document itself can be given to "
     "--config"},
    {"model_name", "-", "what the model calls itself"},
    {"device", "-", "device of the catalogue"},
    {"devices", "-", "devices of the cluster"},
    {"hsdp", "ranks",
     "data-parallel ranks that share one set of sharded states; dp where all "
     "do"},
    {"prefetch", "layers",
     "layers whose weights ZeRO-3 gathers ahead of the one at work; one more "
     "is in memory"},
    {"cp_comm", "-",
     "how context-parallel attention gets all keys: ring passes them round "
     "beside it, all-gather fetches them before it, ulysses exchanges tokens "
     "for heads"},
    {"grad_compress", "-",
     "format of gradients on the wire: none, fp16, bf16, fp8, int8, "
     "topk:SHARE, powersgd:RANK"},
    {"capacity_factor", "-",
     "rows of every expert over balanced, to which tokens are padded or "
     "dropped; null: as many as are routed"},
    {"expert_imbalance", "-",
     "tokens of the busiest rank's experts over the mean"},
    {"trained_params", "-", "parameters that are not frozen"},
    {"offload", "fraction",
     "share of the kept activations that waits in host memory"},
    {"micro_batches", "-", "per step and data-parallel replica"},
    {"mode", "-",
     "how messages move: chunk, flow, analytic, or the mode of --compat"},
    {"npus", "-", "ranks, those without work too; of a tier its members"},
    {"makespan_ns", "ns", "when the last rank ends"},
    {"finish_ns", "ns", "when the rank, or the last of a job, ends"},
    {"compute_ns", "ns", "the device runs kernels"},
    {"exposed_comm_ns", "ns",
     "a communication is in flight and the device computes nothing; with "
     "--compat finish_ns - compute_ns, as ASTRA-sim counts"},
    {"memory_ns", "ns", "loads and stores of remote memory take"},
    {"idle_ns", "ns",
     "finish_ns without compute, exposed communication and exposed loads and "
     "stores: the host works; waiting for others in a collective or a receive "
     "is communication"},
    {"per_npu", "-", "one object per rank"},
    {"rank", "-", "place in the network, from 0"},
    {"jobs", "-", "one object per --workload, and for ranks without work"},
    {"first_rank", "-", "of the job"},
    {"ranks", "-", "of the job; the real ranks of `emulate`"},
    {"tiers", "-",
     "links of one dimension together, or inside nodes and between them; none "
     "where messages have no links"},
    {"links", "-",
     "directed links that carried something, the 100 busiest first; with "
     "--links all each, in order.  \"dim0 3->4\": between NPUs, \"dim1 up "
     "17\": from an NPU to its switch; of a tier, how many there are"},
    {"links_used", "-", "of a tier, how many carried something"},
    {"utilization", "fraction",
     "of makespan_ns in which the link sends; of a tier the mean of all links"},
    {"utilization_most", "fraction", "of the busiest link of a tier"},
    {"compatible", "-",
     "the same files as ASTRA-sim would run them, where that costs little"},
    {"difference", "fraction", "its makespan_ns over ours - 1"},
    {"finished", "yes/no", "all ranks end"},
    {"engine", "-", "what the run took"},
    {"ops", "-", "nodes that were run"},
    {"events", "-", "of the simulation"},
    {"messages", "-", "that were sent, by the ranks that were run"},
    {"classes", "-", "kinds of ranks whose traces are equal but for names"},
    {"simulated", "-",
     "ranks that were run; fewer than npus where one stands for others "
     "exactly"},
    {"wall_s", "s",
     "reading and running; of `emulate` from the start of the first rank to "
     "the end of the last"},
    {"peak_rss_bytes", "bytes",
     "largest memory of the program; of a real rank of `emulate` that of its "
     "largest process"},
    {"failure", "-", "why a live program's run ended as it did; null: well"},
    {"command_status", "-",
     "exit code of the program, of the first rank that failed"},
    {"command_signal", "-", "signal that ended it, instead of an exit code"},
    {"status", "-", "exit code of a real rank"},
    {"signal", "-", "signal that ended it, instead of an exit code"},
    {"library", "-", "collective libraries that were stood in for"},
    {"step_time_q1_s", "s",
     "lower quartile of a live program's steps without the first of each rank; "
     "step_time_s is their median"},
    {"step_time_q3_s", "s", "upper quartile of these steps"},
    {"waited_s", "s",
     "time in which a live program did nothing but wait for its collectives: "
     "of one step (of a result: their mean), or of all calls of one kind; null "
     "where a device's streams wait: then in_flight_s stands for it"},
    {"step_time_mean_s", "s", "mean of these steps"},
    {"step_time_max_s", "s", "the longest of these steps"},
    {"waited_for_ranks_s", "s",
     "of waited_s, until the last member had come to the operation"},
    {"in_flight_s", "s",
     "time with at least one operation in flight, of one step (of a result: "
     "their mean): from when all its members had come (where a device's stream "
     "waits: from when that had come to it) to its end"},
    {"overhead_s", "s",
     "time that standing in for the library took itself, all calls of the real "
     "ranks together"},
    {"late_s", "s",
     "mean time from the modelled end of an operation to when the program had "
     "it"},
    {"unmodelled_calls", "-",
     "calls that went to the real library and took no modelled time"},
    {"cpu_s", "s", "CPU time of a real rank's processes"},
    {"preemptions", "-",
     "how often processes of a real rank lost the processor to others; on a "
     "machine of their own hardly ever"},
    {"clock_s", "s", "the emulation's clock when the rank ended"},
    {"operations", "-", "collectives and messages of a rank, or of a step"},
    {"steps", "-",
     "repetitions of the sequence of operations that a run ends with"},
    {"index", "-", "of a step, from 0"},
    {"begin_s", "s",
     "of the emulation's clock: the end of the last operation of the step "
     "before"},
    {"step_s", "s", "from there to the end of its own last operation"},
    {"compute_s", "s", "step_s - waited_s"},
    {"collectives", "-",
     "calls of real ranks by operation, size and group, the longest first"},
    {"op", "-", "collective, send or recv"},
    {"group_size", "-", "members of its communicator"},
    {"count", "-", "calls; of a role, ranks that have it"},
    {"modelled_s", "s",
     "sum over these calls from when all members had come to the end"},
    {"words", "-", "what is no option: names, files, a program"},
    {"chakra", "-", "traces that --emit-chakra or --record wrote"},
    {"prefix", "-", "of their files: PREFIX.<rank>.et"},
    {"communicators", "-", "groups of ranks in PREFIX.json"},
    {"tasks", "-", "nodes of all ranks"},
    {"world_size", "-", "ranks of the job, real and emulated"},
    {"real", "-", "ranks to run for real, as --ranks takes them"},
    {"roles", "-", "kinds of ranks that do the same, relative to their place"},
    {"role", "-", "what they do"},
    {"seed", "-", "of random numbers"},
    {"byte", "-", "where in a binary file, from 0"},
    {"provenance", "-", "what the numbers depend on, beside the options"},
    {"version", "-", "of stepcast"},
    {"commit", "-", "of stepcast's source"},
    {"fit_hash", "-", "of the fitted parameters"},
    {"model_hash", "-", "of the model's numbers"},
    {"workload_hash", "-", "of tasks, groups and peers of all ranks"},
    {"cluster_hash", "-", "of the cluster's numbers"},
    {"inputs", "-", "files that options name"},
    {"option", "-", "the option that names it"},
    {"file", "-", "its path, or the option that is wrong"},
    {"hash", "-", "of the file's bytes"},
    {"candidates", "-", "configurations tried for what was left out"},
    {"schema", "-", "what the document is, and the version of its form"},
    {"unit", "-", "of what is measured and predicted, or of a field"},
    {"name", "-", "of what is shown or explained"},
    {"kind", "-", "field, option, error or parameter"},
    {"text", "-", "what it means"},
    {"lines", "-", "what people are shown, in lines"},
    {"errors", "-", "what is wrong, all of it; nothing else was printed"},
    {"more_errors", "-", "errors beyond those listed"},
    {"code", "-", "kind of the error; `stepcast explain` says what it is"},
    {"line", "-", "where in the file, from 1; 0: not known"},
    {"column", "-", "where in the line, from 1; 0: not known"},
    {"message", "-", "what is wrong"},
    {"hint", "-", "what to write instead"},
    {0},
};
