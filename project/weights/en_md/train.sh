#!/bin/sh
# Starts or resumes the long training of en_md, in a frozen clone of the project; see README.md.
#
#     project/weights/en_md/train.sh DATA [FOLDER]
#
# DATA has lm/ and eval_vocab.txt. FOLDER (default: ~/.cache/spacy-elmo/md) becomes the clone, with
# an environment and all that is trained, in build/en_md. PYTHON is the interpreter for a new one.
set -eu

commit=${COMMIT:-c7be6fed5577d2c2e39a6a17edd76eeae2ffb33b}
dim=1024 projection=256 filters=1024

data=$(realpath "${1:?give the folder of the texts}")
folder=$(realpath -m "${2:-$HOME/.cache/spacy-elmo/md}")
here=$(realpath "$(dirname "$0")")

if [ ! -d "$folder" ]; then
    git clone --quiet "$(git -C "$here" rev-parse --show-toplevel)" "$folder"
    git -C "$folder" checkout --quiet --detach "$commit"
fi
cd "$folder"
test -e .venv/.installed-dev || make --quiet .venv/.installed-dev ${PYTHON:+PYTHON="$PYTHON"}
PATH=$folder/.venv/bin:$PATH OMP_NUM_THREADS=1
export PATH OMP_NUM_THREADS
work=build/en_md
mkdir -p $work/run

if [ ! -d $work/train ]; then
    python benchmarks/quality/mixture.py "$data" $work/text
    python -m spacy elmo tokenize $work/text/*.txt $work/train
fi
if [ ! -d $work/dev ]; then  # some documents of each source but Wikipedia and MASC, by which it is judged
    for file in "$data"/lm/fiction-pd/valid.txt.xz "$data"/lm/registers/*/valid.txt.xz; do
        xz -dc "$file" | head -n 75
        echo
    done > $work/dev.txt
    python -m spacy elmo tokenize $work/dev.txt $work/dev
fi
start=$here
if [ ! -e "$start/weights.safetensors" ]; then
    start=$work/start
    test -d $start || python project/scripts/widen.py en_sm $start --train $work/train \
        --vocab "$data/eval_vocab.txt" --dim $dim --projection $projection --filters $filters \
        --scale 0.5 0.125
fi
# Products in bfloat16 where the processor multiplies them faster.
fast=$(python -c 'from spacy_elmo.bilm.torch_precision import has_fast_bfloat16 as f; print(str(f()).lower())')
exec nice -n 19 python -m spacy elmo pretrain "$here/pretrain.cfg" $work/run --from "$start" --resume \
    --training.mixed_precision "$fast"
