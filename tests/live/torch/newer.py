#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""newer.py HOW... - a few training steps with what PyTorch 2 has (ddp, fsdp, fsdp2,
hybrid, tp, pp), and with accelerate and trainer, which make the group themselves if
they are first. After the word `same` all ranks have the same data. Prints "HOW rank R
step S loss L"."""

import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.data import DataLoader, Dataset, TensorDataset

same = False
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
how = None


def layers(width, n=3):
    return nn.Sequential(
        *[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(n)]
    )


def data(step, width=64):
    torch.manual_seed(1000 * step + (0 if same or how in ("tp", "pp") else rank))
    return torch.randn(16, width)


def show(step, loss=None):
    text = "" if loss is None else " loss %.9f" % loss
    who = "same " * same + how
    print("%s rank %d step %s%s" % (who, rank, step, text), flush=True)


def train(model):
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for step in range(4):
        x = data(step)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        show(step, mean.item() / size)


def ddp():
    train(nn.parallel.DistributedDataParallel(layers(64), bucket_cap_mb=0.02))


def other():
    """Another backend for the same: that of MPI, or cpu:gloo,cuda:nccl."""
    global how
    how = "ddp"
    ddp()


mpi = mixed = other


def fsdp():
    from torch.distributed.fsdp import FullyShardedDataParallel

    cpu = torch.device("cpu")
    parts = [FullyShardedDataParallel(x, device_id=cpu) for x in layers(64)]
    train(FullyShardedDataParallel(nn.Sequential(*parts), device_id=cpu))


def sharded(mesh):
    from torch.distributed.fsdp import fully_shard

    model = layers(64)
    for part in [*model, model]:
        fully_shard(part, mesh=mesh)
    train(model)


def fsdp2():
    sharded(init_device_mesh("cpu", (size,)))


def hybrid():
    sharded(init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("all", "part")))


def tp():
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    train(parallelize_module(model, mesh["tp"], plan))


def pp():
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    torch.manual_seed(rank)
    stage = PipelineStage(layers(32, 1), rank, size, torch.device("cpu"))
    schedule = ScheduleGPipe(
        stage, 4, loss_fn=lambda out, to: (out - to).square().mean()
    )
    optimizer = torch.optim.SGD(stage.submod.parameters(), 0.05)
    for step in range(4):
        x, losses = data(step, 32), []
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(x)
        elif rank == size - 1:
            schedule.step(target=x, losses=losses)
        else:
            schedule.step()
        optimizer.step()
        show(step, sum(x.item() for x in losses) / len(losses) if losses else None)


def accelerate():
    """Gradients of two batches, a last batch that not all ranks have, and a file."""
    from accelerate import Accelerator
    from accelerate.utils import InitProcessGroupKwargs

    gloo = InitProcessGroupKwargs(backend="gloo")  # not MPI, which Debian's has
    a = Accelerator(cpu=True, gradient_accumulation_steps=2, kwargs_handlers=[gloo])
    rows = size * 14 if same else 4 * size * 3 + 3
    x = torch.ones(rows, 1) * torch.randn(16) if same else torch.randn(rows, 16)
    loader = DataLoader(TensorDataset(x), batch_size=4)
    model = layers(16)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    model, optimizer, loader = a.prepare(model, optimizer, loader)
    for step, (x,) in enumerate(loader):
        with a.accumulate(model):
            loss = (model(x) - x).square().mean(1)
            a.backward(loss.mean())
            a.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        all_losses = a.gather_for_metrics(loss.detach())
        mean = a.reduce(loss.detach().mean(), "mean")
        show(step, all_losses.sum() + mean)
    a.save_state("saved.accelerate")
    a.wait_for_everyone()
    if os.path.exists("saved.accelerate/optimizer.bin"):  # of rank 0
        a.load_state("saved.accelerate")
    show(99, sum(p.double().square().sum() for p in model.parameters()))


def calls():
    """What goes wrong, or is waited for twice."""
    from torch.distributed.distributed_c10d import _set_pg_timeout

    t = torch.ones(2)
    work = dist.all_reduce(t, async_op=True)
    for _ in range(2):
        work.wait(timedelta(seconds=60))
    gloo = dist.group.WORLD._get_backend(torch.device("cpu"))
    show("work", t.sum() + isinstance(gloo, dist.ProcessGroupGloo))
    try:
        dist.broadcast(t, 7)
    except RuntimeError:
        show("refused", 1)
    _set_pg_timeout(timedelta(seconds=1))
    try:
        if rank == 1:
            time.sleep(3)
        else:
            dist.all_reduce(t)
    except RuntimeError:
        show("late", 1)


class Tokens(Dataset):
    def __len__(self):
        return size * 8

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(0 if same else i)
        ids = torch.randint(0, 64, (16,), generator=g)
        return {"input_ids": ids, "labels": ids}


def trainer():
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer
    from transformers import TrainerCallback, TrainingArguments

    class Show(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            if "loss" in logs:
                show(state.global_step, logs["loss"] + logs["grad_norm"])
            if "eval_loss" in logs:
                show("eval", logs["eval_loss"])

    sizes = dict(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2)
    drop = dict(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    model = GPT2LMHeadModel(
        GPT2Config(**sizes, **drop, bos_token_id=0, eos_token_id=0)
    )
    how_long = dict(max_steps=4, save_steps=4, eval_steps=2, eval_strategy="steps")
    quiet = dict(logging_steps=1, report_to=[], disable_tqdm=True)
    arguments = TrainingArguments(
        "saved.trainer",
        **how_long,
        **quiet,
        use_cpu=True,
        ddp_backend="gloo",
        per_device_train_batch_size=2,
        seed=1,
    )
    t = Trainer(
        model,
        arguments,
        train_dataset=Tokens(),
        eval_dataset=Tokens(),
        callbacks=[Show()],
    )
    t.train()
    t.save_model("saved.trainer")
    if rank == 0:
        GPT2LMHeadModel.from_pretrained("saved.trainer")


for how in sys.argv[1:]:
    if how == "same":
        same = True
        continue
    if how not in ("accelerate", "trainer") and not dist.is_initialized():
        dist.init_process_group({"mixed": None, "mpi": "mpi"}.get(how, "gloo"))
    torch.manual_seed(0)
    globals()[how]()
if how != "calls":
    dist.barrier()
os._exit(0)
