run() { for i in 1 2; do echo $i; done; torchrun --nnodes=$NODES --nproc_per_node 8 \
  pretrain_gpt.py ${A[@]} $((8*${B:-2}/ (1+1))) ; }
A=( --num-layers 8 '--hidden-size' "64" --num-attention-heads 4 )
A+=(--seq-length 128 --micro-batch-size 1 --max-position-embeddings 128 --vocab-size 1000)
case $EMPTY in x*|"") A[9]=--bf16;; *) exit 1;; esac
while read l; do A=1; done < file
[[ ! -f x && ( $B == 2 || -z $C ) ]] || : ${D:=4}
unset B; (cd /x && { run; }) 2>&1 | tee `date`.log &
cat <<-EOT
	text
	EOT
bash -c 'echo "$0"' ; eval "E=$D"
