#!/bin/bash
# From nothing to out/*.gguf. Training stages resume from ckpt/ when started again; sampling stages are skipped when their file exists.
# Two processes of one thread each run side by side.
cd "$(dirname "$0")"
export THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PY=${PY:-/usr/bin/python3}
mkdir -p out ckpt logs prmdata
[ -f out/tokenizer.json ] || $PY bpe.py 1024
$PY held.py check
$PY train.py S S 7000 2e-3 8192 >>logs/S.txt 2>&1 &
$PY train.py L L 4900 1.5e-3 8192 >>logs/L.txt 2>&1
wait

# the mixture begins from S
$PY export_gguf.py S out/S "Lutra Tiny S"
[ -f ckpt/moe.pt ] || $PY mixture.py out/S-tq1_0.gguf moe
$PY train.py moe moe 2200 1.5e-3 8192 >>logs/moe.txt 2>&1

# the verifier's lower layers: a small generator, cut to fewer heads and hidden units, and trained on
$PY train.py V V 4000 2e-3 8192 >>logs/V.txt 2>&1
[ -f prmdata/prmval_S.pkl ] || $PY prm.py samplev prmdata/prmval_S.pkl 1000 val S,4
[ -f prmdata/prm_Shard.pkl ] || $PY prm.py sample prmdata/prm_Shard.pkl 6144 hardS S,4
[ -f prmdata/prm_V.pkl ] || $PY prm.py sample prmdata/prm_V.pkl 10240 trainV V,4
[ -f prmdata/prm_Vhard.pkl ] || $PY prm.py sample prmdata/prm_Vhard.pkl 8192 hardV V,4
[ -f ckpt/X.pt ] || $PY prune.py V X 4 128
$PY train.py X X 4500 2e-3 8192 >>logs/X.txt 2>&1
$PY prm.py train prm1 'prmdata/prm_*.pkl' X 3400 2e-3 0.5 8192 0.2 >>logs/prm.txt 2>&1
$PY prm.py train prm 'prmdata/prm_*.pkl' prm1 2100 1.2e-3 0.5 8192 0.2 >>logs/prm.txt 2>&1

# GGUF files, checks, reference values, tables
$PY export_gguf.py L out/L "Lutra Tiny L"
$PY export_gguf.py moe out/moe "Lutra Tiny MoE"
$PY export_gguf.py prm out/prm "Lutra Tiny PRM"
for form in "" -tq1_0 -tq2_0; do $PY verify_gguf.py out/S$form.gguf S; done
$PY verify_gguf.py out/L-tq2_0.gguf L
$PY verify_gguf.py out/moe-tq1_0.gguf moe
$PY verify_gguf.py out/prm-tq1_0.gguf prm
$PY popularity.py moe >out/popularity.md
$PY golden.py >out/golden.json
EVAL_OUT=out/eval_S.json $PY evaluate.py prm S >>logs/eval.txt 2>&1 &
EVAL_OUT=out/eval_L.json $PY evaluate.py prm L >>logs/eval.txt 2>&1
wait
$PY report.py
echo "all done $(date): out/{S,L,moe,prm}-tq1_0.gguf are lutra-tiny-{s,l,moe,prm}.gguf"
