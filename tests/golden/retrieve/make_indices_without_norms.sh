#!/bin/sh -e
# SPDX-License-Identifier: Apache-2.0
# Wrote exact/, ivf/, hnsw/ and answers.json beside it, with a program from before lengths of rows were stored with an index
# (norms.npy): today's must open them and give the same answers.
#   make_indices_without_norms.sh FUNGI ROOT
fungi=$(realpath "$1") root=$(realpath "$2") here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for class in "$root"/demo/images/test/*/; do
  mkdir -p "data/$(basename "$class")"
  cp $(ls "$class"*.png | head -6) "data/$(basename "$class")/"
done
cp "$root/tests/golden/backbone/timm_vit/model.safetensors" .
"$fungi" extract data -m model.safetensors -o store --objectives kl:width=4 --set heads=4 --projection-dim 16 --precision f32 --quiet
rows=$(cd data && ls -d */*2*.png */*7*.png | sort -u | head -12)
echo "{" > answers.json
for kind in exact ivf hnsw; do
  options="--kind $kind --metric cosine --pca 6"
  if [ $kind = hnsw ]; then options="$options --links 3"; fi
  "$fungi" index store -o $kind $options > /dev/null
  sed -i "s#\"path\": \".*/model.safetensors\"#\"path\": \"model.safetensors\"#" $kind/store.json
  effort=
  if [ $kind = ivf ]; then effort="--probes 3"; fi
  if [ $kind = hnsw ]; then effort="--effort 8"; fi
  echo "\"$kind\": $("$fungi" search $kind --row $rows -k 7 $effort --json)" >> answers.json
  if [ $kind != hnsw ]; then echo "," >> answers.json; fi
done
echo "}" >> answers.json
python3 - <<'END'
import json
answers = json.load(open("answers.json"))
for kind in answers.values():  # rows and values say it all
    for query in kind["queries"]:
        query["neighbours"] = [[n["row"], n["similarity"]] for n in query["neighbours"]]
json.dump({name: kind["queries"] for name, kind in answers.items()}, open("answers.json", "w"))
END
rm -rf "$here/exact" "$here/ivf" "$here/hnsw"
mv exact ivf hnsw answers.json "$here"
