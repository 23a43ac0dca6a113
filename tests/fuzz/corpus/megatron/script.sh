#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=1
export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-1}
CHECKPOINT_PATH=${1:-"checkpoints/x"}
TOKENIZER_ARG=${3:-"MOCK"} # Path
mkdir -p "$(dirname "$CHECKPOINT_PATH")"
GPUS_PER_NODE=8
NUM_NODES=4
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
TP_SIZE=2
DTYPE="fp8"
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
)
MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096   # comment
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --seq-length 8192
    #--data-path $X
    --max-position-embeddings 8192
    --position-embedding-type rope
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --swiglu
    --normalization RMSNorm
    --untie-embeddings-and-output-weights
    --disable-bias-linear 
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size $((16*WORLD_SIZE/2))
    --bf16
)
DTYPE_ARGS=()
if [[ "$DTYPE" == "fp8" ]]; then
    DTYPE_ARGS+=( "--fp8-format hybrid" "--fp8-param-gather" )
fi
if [[ "$TOKENIZER_ARG" == "MOCK" ]] || [[ -z "$TOKENIZER_ARG" ]]; then
    DATA=( "--mock-data" "--vocab-size 128256" )
else
    DATA=( "--vocab-size 1" )
fi
if [ ! -f "x.py" ]; then
    echo "Error"
    exit 1
fi
CUDA_LAUNCH_BLOCKING=1 torchrun ${DISTRIBUTED_ARGS[@]} \
    pretrain_gpt.py \
    ${MODEL_ARGS[@]} \
    ${TRAINING_ARGS[@]} ${DTYPE_ARGS[@]} ${DATA[@]} \
    --tensor-model-parallel-size $TP_SIZE --sequence-parallel --use-distributed-optimizer \
    $EXTRA 2>&1 | tee log
set +x
