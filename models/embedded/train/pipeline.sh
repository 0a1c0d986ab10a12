#!/bin/bash
# From nothing to out/*.gguf. Training stages resume from ckpt/ when started again; sampling stages are skipped when their file exists.
# S and L train side by side, one thread each (on two cores this is faster than one after the other with two threads).
cd "$(dirname "$0")"
export THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PY=${PY:-/usr/bin/python3}
mkdir -p out ckpt logs prmdata
[ -f out/tokenizer.json ] || $PY bpe.py 1024
[ -f out/test.jsonl ] || $PY data.py test 500 20260 >out/test.jsonl
$PY train.py L L 2800 1.5e-3 4096 >>logs/L.txt 2>&1 &
$PY train.py S S 3200 2e-3 4096 >>logs/S.txt 2>&1
echo "S done $(date)"
[ -f prmdata/prmval_S.pkl ] || $PY prm.py samplev prmdata/prmval_S.pkl 768 val S,4
[ -f prmdata/prmval_H.pkl ] || $PY prm.py samplev prmdata/prmval_H.pkl 512 hardval S,4
[ -f prmdata/prm_S.pkl ] || $PY prm.py sample prmdata/prm_S.pkl 14336 trainS S,4
[ -f prmdata/prm_H.pkl ] || $PY prm.py sample prmdata/prm_H.pkl 8192 hardS S,4
[ -f prmdata/prm_L.pkl ] || $PY prm.py sample prmdata/prm_L.pkl 4096 hardL L,2
echo "samples done $(date)"
$PY prm.py train prm1 'prmdata/prm_*.pkl' S 1800 1e-3 0.5 >>logs/prm.txt 2>&1
$PY prm.py train prm 'prmdata/prm_*.pkl' prm1 2600 8e-4 0.5 >>logs/prm.txt 2>&1
wait
echo "L and PRM done $(date)"

# tables, GGUF files, reference values, checks
EVAL_OUT=out/eval_S.json $PY evaluate.py prm S >>logs/eval.txt 2>&1 &
EVAL_OUT=out/eval_L.json $PY evaluate.py prm L >>logs/eval.txt 2>&1
wait
$PY export_gguf.py S out/S "Lutra Tiny S"
$PY export_gguf.py L out/L "Lutra Tiny L"
$PY export_gguf.py prm out/prm "Lutra Tiny PRM"
for form in "" -tq1_0 -tq2_0; do $PY verify_gguf.py out/S$form.gguf S; done
$PY verify_gguf.py out/L-tq2_0.gguf L
$PY verify_gguf.py out/prm.gguf prm
$PY golden.py >out/golden.json
$PY report.py
echo "all done $(date): out/{S,L,prm}-tq1_0.gguf are lutra-tiny-{s,l,prm}.gguf"
