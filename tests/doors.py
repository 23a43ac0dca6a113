# SPDX-License-Identifier: Apache-2.0
"""The same question through every door: one job as options, as files of other
programs, as the dumped job, as a strategy, through the C library and the Python
module.  Step time, memory and MFU are equal, to the last digit.

doors.py PROGRAM, with the module's folder in PYTHONPATH and the library's path in
STEPCAST_LIBRARY."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile

import stepcast

program = sys.argv[1]
folder = tempfile.mkdtemp()
atexit.register(shutil.rmtree, folder)
failed = 0

LLAMA3 = """--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
  --num-attention-heads 32 --group-query-attention --num-query-groups 8
  --max-position-embeddings 8192 --vocab-size 128256
  --make-vocab-size-divisible-by 1 --swiglu --normalization RMSNorm
  --disable-bias-linear --untie-embeddings-and-output-weights
  --position-embedding-type rope --attention-dropout 0 --hidden-dropout 0"""
MIXTRAL = """--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
  --num-attention-heads 32 --group-query-attention --num-query-groups 8
  --max-position-embeddings 32768 --vocab-size 32000
  --make-vocab-size-divisible-by 1 --swiglu --normalization RMSNorm
  --disable-bias-linear --untie-embeddings-and-output-weights
  --position-embedding-type rope --attention-dropout 0 --hidden-dropout 0
  --num-experts 8 --moe-router-topk 2 --moe-grouped-gemm
  --moe-token-dispatcher-type alltoall"""
NEMO_LLAMA3 = """  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 14336
  num_attention_heads: 32
  num_query_groups: 8
  max_position_embeddings: 8192
  make_vocab_size_divisible_by: 1
  vocab_size: 128256
  activation: fast-swiglu
  normalization: rmsnorm
  bias: false
  share_embeddings_and_output_weights: false
  position_embedding_type: rope
  hidden_dropout: 0
  attention_dropout: 0
"""


def script(model, options, devices):
    return ("train.sh", f"torchrun --nproc_per_node 8 --nnodes {devices // 8} "
            "pretrain_gpt.py \\\n  " + (model + "\n" + options).replace("\n", " \\\n") + "\n")


def job(name, options, *files, strategy=None):
    """files: (name, text[, options that the file does not give])."""
    return {"name": name, "options": options, "files": files, "strategy": strategy}


BASE = {"model": "llama3-8b", "cluster": "dgx-h100:2", "software": "megatron-core",
        "global-batch": 64, "micro-batch": 1, "seq": 4096, "precision": "bf16",
        "tp": 1, "pp": 1, "dp": 16, "cp": 1, "ep": 1, "vp": 1, "zero": 1,
        "sp": False, "recompute": "none", "schedule": "1f1b", "grad-bytes": "4B",
        "overlap-grad-reduce": True}
OWN = {k: v for k, v in BASE.items() if k not in ("software", "grad-bytes")}
RUN = "--micro-batch-size 1 --global-batch-size 64 --seq-length 4096 --bf16"
DIST = "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
BATCH = "batch: {global: 64, micro: 1, seq: 4096}\nprecision: bf16\n"
HEAD = "model: llama3-8b\ncluster: dgx-h100:2\nsoftware: megatron-core\n" + BATCH

JOBS = [
    job("dense, tp pp dp", {**BASE, "tp": 2, "pp": 2, "dp": 4, "sp": True},
        script(LLAMA3, f"{RUN} {DIST} --tensor-model-parallel-size 2 "
               "--pipeline-model-parallel-size 2 --sequence-parallel", 16),
        strategy=HEAD + "mesh: {pp: 2, dp: 4, tp: 2}\npreset: {tensor_parallel: "
        "megatron-sp, zero: 1, recompute: none}\npipeline: {schedule: 1f1b}\n"
        "overlap: {grad: true}\n"),
    job("virtual stages", {**BASE, "pp": 4, "dp": 4, "vp": 4, "schedule": "interleaved"},
        script(LLAMA3, f"{RUN} {DIST} --pipeline-model-parallel-size 4 "
               "--num-layers-per-virtual-pipeline-stage 2", 16),
        strategy=HEAD + "mesh: {pp: 4, dp: 4}\npreset: {zero: 1, recompute: none}\n"
        "pipeline: {schedule: interleaved, virtual: 4}\noverlap: {grad: true}\n"),
    job("recompute full", {**BASE, "recompute": "full", "recompute-method": "uniform",
                           "recompute-num-layers": 1},
        script(LLAMA3, f"{RUN} {DIST} --recompute-granularity full "
               "--recompute-method uniform --recompute-num-layers 1", 16),
        strategy=HEAD + "mesh: {dp: 16}\npreset: {zero: 1, recompute: full, "
        "recompute_method: uniform, recompute_num_layers: 1}\noverlap: {grad: true}\n"),
    job("recompute selective, no overlap, no ZeRO",
        {**BASE, "tp": 4, "dp": 4, "sp": True, "recompute": "selective", "zero": 0,
         "overlap-grad-reduce": False},
        script(LLAMA3, f"{RUN} --tensor-model-parallel-size 4 --sequence-parallel "
               "--recompute-granularity selective", 16),
        strategy=HEAD + "mesh: {dp: 4, tp: 4}\npreset: {tensor_parallel: megatron-sp, "
        "zero: 0, recompute: selective}\noverlap: {grad: false}\n"),
    job("context parallel", {**BASE, "cp": 2, "tp": 2, "dp": 4, "sp": True},
        script(LLAMA3, f"{RUN} {DIST} --tensor-model-parallel-size 2 "
               "--context-parallel-size 2 --sequence-parallel", 16),
        strategy=HEAD + "mesh: {dp: 4, cp: 2, tp: 2}\npreset: {tensor_parallel: "
        "megatron-sp, zero: 1, recompute: none}\noverlap: {grad: true}\n"),
    job("experts", {**BASE, "model": "mixtral-8x7b", "cluster": "dgx-h100:4", "pp": 2,
                    "dp": 16, "ep": 8, "recompute": "selective"},
        script(MIXTRAL, f"{RUN} {DIST} --pipeline-model-parallel-size 2 "
               "--expert-model-parallel-size 8 --recompute-granularity selective", 32),
        strategy=HEAD.replace("llama3-8b", "mixtral-8x7b").replace("h100:2", "h100:4")
        + "mesh: {pp: 2, dp: 2, ep: 8}\npreset: {zero: 1, recompute: selective}\n"
        "pipeline: {schedule: 1f1b}\noverlap: {grad: true}\n"),
    job("fp8", {**BASE, "tp": 2, "dp": 8, "sp": True, "precision": "fp8"},
        script(LLAMA3, f"{RUN} {DIST} --tensor-model-parallel-size 2 "
               "--sequence-parallel --fp8-format hybrid", 16),
        strategy=HEAD.replace("precision: bf16", "precision: fp8") +
        "mesh: {dp: 8, tp: 2}\npreset: {tensor_parallel: megatron-sp, zero: 1, "
        "recompute: none}\noverlap: {grad: true}\n"),
    job("NeMo", {**BASE, "software": "nemo-2024", "tp": 2, "pp": 2, "dp": 4, "sp": True},
        ("nemo.yaml", "trainer: {devices: 8, num_nodes: 2, precision: bf16-mixed}\n"
         "model:\n  micro_batch_size: 1\n  global_batch_size: 64\n"
         "  encoder_seq_length: 4096\n  tensor_model_parallel_size: 2\n"
         "  pipeline_model_parallel_size: 2\n  sequence_parallel: true\n"
         + NEMO_LLAMA3 + "  optim: {name: distributed_fused_adam, "
         "overlap_grad_sync: true}\n", {"grad-bytes": "4B"}),
        # the only key that a strategy lacks: NeMo's own default is 2 bytes
        strategy=(HEAD.replace("megatron-core", "nemo-2024") +
        "mesh: {pp: 2, dp: 4, tp: 2}\npreset: {tensor_parallel: megatron-sp, zero: 1, "
        "recompute: none}\npipeline: {schedule: 1f1b}\noverlap: {grad: true}\n",
        {"grad-bytes": "4B"})),
    job("recompute block, fp16",
        {**BASE, "pp": 2, "dp": 8, "precision": "fp16", "recompute": "full",
         "recompute-method": "block", "recompute-num-layers": 3},
        script(LLAMA3, f"{RUN} {DIST}".replace("--bf16", "--fp16") +
               " --accumulate-allreduce-grads-in-fp32 "
               "--pipeline-model-parallel-size 2 --recompute-granularity full "
               "--recompute-method block --recompute-num-layers 3", 16),
        strategy=HEAD.replace("precision: bf16", "precision: fp16") +
        "mesh: {pp: 2, dp: 8}\npreset: {zero: 1, recompute: full, recompute_method: "
        "block, recompute_num_layers: 3}\npipeline: {schedule: 1f1b}\n"
        "overlap: {grad: true}\n"),
    job("gathered keys, tp 8", {**BASE, "cp": 2, "tp": 8, "dp": 1, "sp": True,
                                "cp-comm": "all-gather", "seq": 32768, "global-batch": 8},
        script(LLAMA3, (f"{RUN} {DIST} --tensor-model-parallel-size 8 "
               "--context-parallel-size 2 --sequence-parallel --cp-comm-type all_gather")
               .replace("4096", "32768").replace("size 64", "size 8"), 16),
        strategy=HEAD.replace("64", "8").replace("4096", "32768") +
        "mesh: {dp: 1, cp: 2, tp: 8}\npreset: {tensor_parallel: "
        "megatron-sp, zero: 1, recompute: none, context_parallel: all-gather}\n"
        "overlap: {grad: true}\n"),
    job("experts and tp", {**BASE, "model": "mixtral-8x7b", "cluster": "dgx-h100:4",
                           "tp": 2, "pp": 2, "dp": 8, "ep": 4, "sp": True,
                           "recompute": "selective"},
        script(MIXTRAL, f"{RUN} {DIST} --pipeline-model-parallel-size 2 --sequence-parallel "
               "--tensor-model-parallel-size 2 --expert-tensor-parallel-size 2 "
               "--expert-model-parallel-size 4 --recompute-granularity selective", 32),
        strategy=HEAD.replace("llama3-8b", "mixtral-8x7b").replace("h100:2", "h100:4")
        + "mesh: {pp: 2, dp: 4, ep: 2, tp: 2}\npreset: {tensor_parallel: megatron-sp, "
        "zero: 1, recompute: selective}\n"
        "pipeline: {schedule: 1f1b}\noverlap: {grad: true}\n"),
    job("70B", {**BASE, "model": "llama3-70b", "cluster": "dgx-h100:16", "tp": 8, "pp": 4,
                "dp": 4, "vp": 5, "schedule": "interleaved", "sp": True,
                "recompute": "selective"},
        strategy=HEAD.replace("8b", "70b").replace("h100:2", "h100:16") +
        "mesh: {pp: 4, dp: 4, tp: 8}\npreset: {tensor_parallel: megatron-sp, zero: 1, "
        "recompute: selective}\npipeline: {schedule: interleaved, virtual: 5}\n"
        "overlap: {grad: true}\n"),
    job("optimizer in host memory", {**BASE, "zero": 2, "offload-optimizer": "cpu",
                                     "recompute": "full"},
        ("ds.json", json.dumps({
            "train_batch_size": 64, "train_micro_batch_size_per_gpu": 1,
            "bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"},
            "zero_optimization": {"stage": 2, "overlap_comm": True,
                                  "offload_optimizer": {"device": "cpu"}}}),
         {"model": "llama3-8b", "seq": 4096, "recompute": "full",
          "software": "megatron-core"}),
        strategy=HEAD + "mesh: {dp: 16}\npreset: {zero: 2, recompute: full}\n"
        "overlap: {grad: true}\noffload: {optimizer: cpu}\n"),
]
LORA = os.path.join(folder, "lora.yml")
with open(LORA, "w") as f:
    f.write("name: lora\nlayers: 16\nhidden: 2048\nheads: 16\nvocab: 32000\n"
            "ffn: 5504\nmax_seq: 4096\nlora: 16\n")
TITAN = {k: v for k, v in BASE.items() if k not in ("zero", "grad-bytes", "software")}
TITAN.update({"software": "torchtitan-2025", "zero": 3, "fsdp": True, "prefetch": 1,
              "global-batch": 16})
TOML = """[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 4096
[compile]
enable = true
[activation_checkpoint]
mode = "%s"
[parallelism]
data_parallel_replicate_degree = %d
data_parallel_shard_degree = -1
tensor_parallel_degree = 1
"""
JOBS += [
    job("FSDP", {**TITAN, "recompute": "full"}, ("titan.toml", TOML % ("full", 1)),
        strategy="model: llama3-8b\ncluster: dgx-h100:2\nsoftware: torchtitan-2025\n"
        "mesh: {fsdp: 16}\nbatch: {global: 16, micro: 1, seq: 4096}\nprecision: bf16\n"
        "preset: {recompute: full}\noverlap: {grad: true}\n"),
    job("HSDP", {**TITAN, "hsdp": 8}, ("titan.toml", TOML % ("none", 2)),
        strategy="model: llama3-8b\ncluster: dgx-h100:2\nsoftware: torchtitan-2025\n"
        "mesh: {dp: 2, fsdp: 8}\nbatch: {global: 16, micro: 1, seq: 4096}\n"
        "precision: bf16\npreset: {recompute: none}\noverlap: {grad: true}\n"),
    job("accumulation, ZeRO-3", {**BASE, "zero": 3, "global-batch": 256, "micro-batch": 2,
                                 "recompute": "full", "prefetch": 1},
        ("ds.json", json.dumps({
            "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 8,
            "bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"},
            "zero_optimization": {"stage": 3, "overlap_comm": True}}),
         {"model": "llama3-8b", "seq": 4096, "recompute": "full",
          "software": "megatron-core"}),
        strategy="model: llama3-8b\ncluster: dgx-h100:2\nsoftware: megatron-core\n"
        "mesh: {dp: 16}\nbatch: {global: 256, micro: 2, seq: 4096}\nprecision: bf16\n"
        "preset: {zero: 3, recompute: full}\noverlap: {grad: true}\n"),
    job("ZeRO-2", {**BASE, "zero": 2, "recompute": "full"},
        ("ds.json", json.dumps({
            "train_batch_size": 64, "train_micro_batch_size_per_gpu": 1,
            "bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"},
            "zero_optimization": {"stage": 2, "overlap_comm": True}}),
         {"model": "llama3-8b", "seq": 4096, "recompute": "full",
          "software": "megatron-core"}),
        strategy=HEAD + "mesh: {dp: 16}\npreset: {zero: 2, recompute: full}\n"
        "overlap: {grad: true}\n"),
    job("accelerate, Trainer", {**TITAN, "software": "torchtitan-eager-2024",
                                "recompute": "full", "global-batch": 64,
                                "micro-batch": 2},
        ("accelerate.yaml", "distributed_type: FSDP\nmixed_precision: bf16\n"
         "num_processes: 16\nnum_machines: 2\nfsdp_config:\n"
         "  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_activation_checkpointing: true\n",
         {"model": "llama3-8b", "seq": 4096, "micro-batch": 2, "global-batch": 64,
          "overlap-grad-reduce": True, "prefetch": 1}),
        ("hf.sh", "torchrun --nnodes 2 --nproc_per_node 8 run_clm.py --bf16 "
         "--model_name_or_path meta-llama/Meta-Llama-3-8B --block_size 4096 "
         "--per_device_train_batch_size 2 --gradient_accumulation_steps 2 "
         "--gradient_checkpointing --fsdp 'full_shard auto_wrap'\n",
         {"overlap-grad-reduce": True, "prefetch": 1})),
    *(job(schedule, {**OWN, "pp": 4, "dp": 4, "schedule": schedule},
          strategy=HEAD.replace("software: megatron-core\n", "") +
          "mesh: {pp: 4, dp: 4}\npreset: {zero: 1, recompute: none}\n"
          f"pipeline: {{schedule: {schedule}}}\noverlap: {{grad: true}}\n")
      for schedule in ("zb-h1", "dualpipe", "gpipe")),
    job("LoRA", {**BASE, "model": LORA}, strategy=HEAD.replace("llama3-8b", LORA) +
        "mesh: {dp: 16}\npreset: {zero: 1, recompute: none}\noverlap: {grad: true}\n"),
    job("frozen layers", {**BASE, "freeze": "embedding,layers.0-15.*", "tp": 2, "dp": 8},
        strategy=(HEAD + "mesh: {dp: 8, tp: 2}\npreset: {tensor_parallel: megatron, "
                  "zero: 1, recompute: none}\noverlap: {grad: true}\n",
                  {"freeze": "embedding,layers.0-15.*"})),
    # what is left out is inferred alike
    job("nothing but a model", {"model": "llama3-8b", "cluster": "dgx-h100:2"}),
    job("nothing but a mesh", {"model": "llama3-70b", "cluster": "dgx-h100:8", "tp": 8,
                               "pp": 2, "dp": 4, "cp": 1, "ep": 1, "sp": True},
        strategy="model: llama3-70b\ncluster: dgx-h100:8\nmesh: {pp: 2, dp: 4, tp: 8}\n"
        "preset: {tensor_parallel: megatron-sp}\n"),
    job("nothing but experts", {"model": "mixtral-8x7b", "cluster": "dgx-h100:4", "tp": 1,
                                "pp": 1, "dp": 32, "cp": 1, "ep": 8, "vp": 1},
        strategy="model: mixtral-8x7b\ncluster: dgx-h100:4\nmesh: {dp: 4, ep: 8}\n"),
    job("nothing but a batch", {"model": "gpt3-13b", "cluster": "dgx-a100-80g:4",
                                "global-batch": 512, "seq": 2048, "tp": 4, "sp": False,
                                "pp": 1, "dp": 8, "cp": 1, "ep": 1, "vp": 1},
        strategy="model: gpt3-13b\ncluster: dgx-a100-80g:4\nmesh: {dp: 8, tp: 4}\n"
        "batch: {global: 512, seq: 2048}\npreset: {tensor_parallel: megatron}\n"),
]


def words(options):
    out = []
    for key, value in options.items():
        if value is True:
            out += ["--" + key]
        elif value is False:
            out += ["--no-" + key]
        else:
            out += ["--" + key, str(value)]
    return out


def run(*arguments):
    r = subprocess.run([program, "predict", *arguments, "--json", "--quiet"],
                       capture_output=True, text=True)
    if r.returncode > 1:
        return (r.stderr + r.stdout).strip()
    return json.loads(r.stdout)


def numbers(r):
    if isinstance(r, str):
        return r
    return {"step_time_s": r["step_time_s"], "mfu": r["mfu"], "fits": r["fits"],
            "memory": r["memory_per_stage"]}


def compare(name, door, want, got):
    global failed
    if numbers(want) == numbers(got):
        return
    failed += 1
    print(f"{name}, {door}:")
    if isinstance(got, str) or isinstance(want, str):
        print("   ", got if isinstance(got, str) else want)
        return
    print(f"    {got['step_time_s']} s, MFU {got['mfu']}, not "
          f"{want['step_time_s']} s, {want['mfu']}")
    for key, value in want["config"].items():
        if got["config"].get(key) != value:
            print(f"    {key} {got['config'].get(key)}, not {value}")
    for a, b in zip(want["memory_per_stage"], got["memory_per_stage"]):
        for key in a:
            if a[key] != b.get(key):
                print(f"    memory: {key} {b.get(key)}, not {a[key]}")


def file_of(name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    return path


for j in JOBS:
    name, options = j["name"], j["options"]
    want = run(*words(options))
    assert not isinstance(want, str), (name, want)
    module = stepcast.predict(**{k.replace("-", "_"): v for k, v in options.items()})
    compare(name, "Python", want, module)
    dumped = os.path.join(folder, "job.yml")
    subprocess.run([program, "predict", *words(options), "--dump-config", "--quiet",
                    "-o", dumped], check=True)
    compare(name, "--dump-config, --config", want, run("--config", dumped))
    compare(name, "the dumped job in Python", want, stepcast.predict(config=dumped))
    for f in j["files"]:
        path = file_of(f[0], f[1])
        more = {"cluster": options["cluster"], **(f[2] if len(f) > 2 else {})}
        given = words(more) + ["--from", path]
        got = run(*given)
        compare(name, f"--from {f[0]}", want, got)
        if isinstance(got, str):
            continue
        more = {k.replace("-", "_"): v for k, v in more.items()}
        more["from"] = [path]
        compare(name, f"{f[0]} in Python", got, stepcast.predict(**more))
        subprocess.run([program, "predict", *given, "--dump-config", "--quiet", "-o",
                        dumped], check=True)
        compare(name, f"{f[0]}, --dump-config", got, run("--config", dumped))
    if j["strategy"]:
        s = j["strategy"]
        text, more = s if isinstance(s, tuple) else (s, {})
        path = file_of("strategy.yml", text)
        got = run("--strategy", path, *words(more))
        compare(name, "--strategy", want, got)
        more = {k.replace("-", "_"): v for k, v in more.items()}
        compare(name, "strategy in Python", got,
                stepcast.predict(strategy=path, **more))

print(f"{len(JOBS)} jobs, {failed} differences")
sys.exit(failed > 0)
