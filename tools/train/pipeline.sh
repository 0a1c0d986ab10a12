#!/bin/bash
# From nothing to out/*.gguf, or with SMOKE=1 through every stage in minutes: a few steps and problems each, in a copy of this folder.
# Training stages resume from ckpt/ when started again; sampling stages are skipped when their file exists. The first failure ends it.
# Two processes of one thread each run side by side.
set -euo pipefail
cd "$(dirname "$0")"
export THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PY=${PY:-/usr/bin/python3}
few() { echo "$1"; }
if [ "${SMOKE:-}" ]; then
  d=$(mktemp -d)
  trap 'rm -rf "$d"' EXIT
  mkdir -p "$d/tools/train" "$d/models/embedded"
  cp ./*.py ./*.c ./*.sh ./*.md told.txt "$d/tools/train"
  cp ../../models/embedded/*.jsonl "$d/models/embedded"
  cd "$d/tools/train"
  export LIMIT=4
  few() { echo $(($1 / 1000 + 2)); }
fi
checked=${LIMIT:-20}
mkdir -p out ckpt logs prmdata
train() { $PY train.py "$1" "$1" "$(few "$2")" "$3" 8192 >>"logs/$1.txt" 2>&1 || { tail -5 "logs/$1.txt"; return 1; }; }
sample() { [ -f "prmdata/$2.pkl" ] || $PY prm.py "$1" "prmdata/$2.pkl" "$(few "$3")" "$4" "$5"; }
verifier() { $PY prm.py train "$1" 'prmdata/prm_*.pkl' "$2" "$(few "$3")" "$4" 0.5 8192 0.2 >>logs/prm.txt 2>&1 || { tail -5 logs/prm.txt; return 1; }; }
both() { wait "$1"; wait "$2"; }  # with the status of each

[ -f out/tokenizer.json ] || $PY bpe.py 1024
$PY held.py check "$(few 200000)"
$PY hard.py check "$(few 200000)"
$PY selftest.py
train S 7000 2e-3 & s=$!
train L 4900 1.5e-3 & both $s $!

# the mixture begins from S
$PY export_gguf.py S out/S "Lutra Tiny S"
[ -f ckpt/moe.pt ] || $PY mixture.py out/S-tq1_0.gguf moe
train moe 2200 1.5e-3

# the verifier's lower layers: a small generator, cut to fewer heads and hidden units, and trained on
train V 4000 2e-3
sample samplev prmval_S 1000 val S,4
sample sample prm_Shard 6144 hardS S,4
sample sample prm_Stold 5120 toldS S,4
sample sample prm_Ltold 5120 toldL L,4
sample sample prm_V 10240 trainV V,4
sample sample prm_Vhard 8192 hardV V,4
[ -f ckpt/X.pt ] || $PY prune.py V X 4 128
train X 4500 2e-3
verifier prm1 X 3400 2e-3
verifier prm prm1 2100 1.2e-3

# GGUF files, checks, reference values, tables
$PY export_gguf.py L out/L "Lutra Tiny L"
$PY export_gguf.py moe out/moe "Lutra Tiny MoE"
$PY export_gguf.py prm out/prm "Lutra Tiny PRM"
for form in "" -tq1_0 -tq2_0; do $PY verify_gguf.py out/S$form.gguf S "$checked"; done
$PY verify_gguf.py out/L-tq2_0.gguf L "$checked"
$PY verify_gguf.py out/moe-tq1_0.gguf moe "$checked"
$PY verify_gguf.py out/prm-tq1_0.gguf prm "$checked"
$PY popularity.py moe >out/popularity.md
$PY golden.py >out/golden.json
EVAL_OUT=out/eval_S.json $PY evaluate.py prm S >>logs/eval.txt 2>&1 & s=$!
EVAL_OUT=out/eval_L.json $PY evaluate.py prm L >>logs/eval.txt 2>&1 & both $s $!
$PY report.py
ls -l out/{S,L,moe,prm}-tq1_0.gguf
echo "all done $(date): out/{S,L,moe,prm}-tq1_0.gguf are lutra-tiny-{s,l,moe,prm}.gguf"
