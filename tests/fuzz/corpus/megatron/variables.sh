#! /bin/bash
NLAYERS=128
HIDDEN=25600
TP=1
OFF=cpu
if [ "$OFF" = "none" ]; then A=1; fi
data_options=" \
         --vocab-file ${VOCAB_PATH} \
         --vocab-size 50257"
cat <<EOT > $DS_CONFIG
{
  "train_batch_size" : $GLOBAL_BATCH (
}
EOT
ds_args=" "
ds_args=" --deepspeed ${ds_args}"
ds_args=" --zero-stage=3 ${ds_args}"
run="deepspeed --force_multi --num_nodes=4 --num_gpus=8 pretrain_gpt.py --tensor-model-parallel-size $TP \
   --num-layers $NLAYERS --hidden-size $HIDDEN --num-attention-heads 160 --seq-length 1024 --max-position-embeddings 1024 \
  --micro-batch-size 1 --fp16 --checkpoint-activations $data_options $ds_args --lr 6.0e-5"
echo $run
srun --nodes=4 bash -c "$run" | tee x
