#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/input/layouts/: miniatures of data sets in the layouts in which they are published, and layouts.json with the
samples of every split as scipy and scikit-learn read them. A developer's tool; needs numpy, scipy, scikit-learn, Pillow."""
import io
import json
import pathlib
import pickle
import shutil

import numpy as np
import scipy.io
from PIL import Image
from sklearn.model_selection import StratifiedShuffleSplit

OUT = pathlib.Path(__file__).parent / "input" / "layouts"
EXPECTED = {}


def write(path, content):
    path = OUT / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def picture(path, shade):
    out = io.BytesIO()
    Image.new("L", (8, 8), shade % 256).save(out, "jpeg", quality=50)
    write(path, out.getvalue())


def expect(name, path, classes, **splits):
    """Samples are [id, label], of texts [id, label, text]."""
    EXPECTED[name] = {"path": path, "classes": classes, "splits": splits}


def mat(path, **values):
    (OUT / path).parent.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(OUT / path, values, do_compression=True)


def load(path):
    return scipy.io.loadmat(OUT / path, squeeze_me=True)


def records(**columns):
    rows = np.zeros((1, len(next(iter(columns.values())))), dtype=[(name, "O") for name in columns])
    for name, values in columns.items():
        for i, value in enumerate(values):
            rows[0, i][name] = value
    return rows


def flowers():
    root = "flowers/flowers-102/"
    labels = [1, 3, 2, 2, 1, 3, 1, 2, 3]
    ids = {"trnid": [5, 3, 2], "valid": [1, 4, 6], "tstid": [7, 9, 8]}
    mat(root + "imagelabels.mat", labels=np.array([labels], np.uint8))
    mat(root + "setid.mat", **{k: np.array([v], np.uint16) for k, v in ids.items()})
    for i, label in enumerate(labels, 1):
        picture(root + f"jpg/image_{i:05}.jpg", 60 * label)
    of = dict(enumerate(load(root + "imagelabels.mat")["labels"].tolist(), 1))
    split = load(root + "setid.mat")
    expect("flowers", "flowers", [], **{name: [[f"image_{i:05}.jpg", of[i] - 1] for i in split[key].tolist()]
                                        for name, key in (("train", "trnid"), ("val", "valid"), ("test", "tstid"))})


def cars():
    names = ["AM General Hummer SUV 2000", "Acura RL Sedan 2012", "Ram C/V Cargo Van"]
    box = {"bbox_x1": [1] * 3, "bbox_y1": [2] * 3, "bbox_x2": [3] * 3, "bbox_y2": [4] * 3}
    root = "cars/stanford_cars/"
    cells = np.empty((1, 3), object)
    cells[0] = names
    mat(root + "devkit/cars_meta.mat", class_names=cells)
    mat(root + "devkit/cars_train_annos.mat",
        annotations=records(**box, **{"class": np.array([3, 1, 2], np.uint8), "fname": ["00001.jpg", "00002.jpg", "00003.jpg"]}))
    mat(root + "cars_test_annos_withlabels.mat",
        annotations=records(**box, **{"class": np.array([2, 2, 1], np.uint8), "fname": ["00001.jpg", "00002.jpg", "00003.jpg"]}))
    for split in ("train", "test"):
        for i in (1, 2, 3):
            picture(root + f"cars_{split}/0000{i}.jpg", 40 * i)
    rows = {split: [[str(a["fname"]), int(a["class"]) - 1] for a in load(root + file)["annotations"]]
            for split, file in (("train", "devkit/cars_train_annos.mat"), ("test", "cars_test_annos_withlabels.mat"))}
    expect("cars", "cars", load(root + "devkit/cars_meta.mat")["class_names"].tolist(), **rows)
    # The authors' later archive: one folder and one list of both splits.
    root = "cars_together/"
    files = ["car_ims/000001.jpg", "car_ims/000002.jpg", "car_ims/000003.jpg"]
    mat(root + "cars_annos.mat", class_names=cells,
        annotations=records(relative_im_path=files, **box, **{"class": np.array([1, 2, 3], np.uint8), "test": np.array([0, 1, 0], np.uint8)}))
    for i, file in enumerate(files):
        picture(root + file, 50 * i)
    found = load(root + "cars_annos.mat")["annotations"]
    expect("cars_together", "cars_together", names,
           **{split: [[str(a["relative_im_path"]), int(a["class"]) - 1] for a in found if int(a["test"]) == test]
              for split, test in (("train", 0), ("test", 1))})


def revisited():
    """As the authors pickle it: boxes are of floats, which no list needs."""
    for root, file, names, queries in (("roxford/roxford5k/", "gnd_roxford5k.pkl", ["all_souls_000013", "oxford_002904", "radcliffe_camera_000001"],
                                        ["all_souls_000026"]),
                                       ("rparis/", "gnd_rparis6k.pkl", ["paris_defense_000605", "paris_louvre_000037"],
                                        ["paris_defense_000038", "paris_louvre_000135"])):
        gnd = [{"bbx": [136.5, 34.1, 648.5, 955.7], "easy": [0], "hard": [1], "junk": []} for _ in queries]
        write(root + file, pickle.dumps({"imlist": names, "qimlist": queries, "gnd": gnd}, protocol=2))
        for i, name in enumerate(names + queries):
            picture(root + f"jpg/{name}.jpg", 30 * i)
        found = pickle.loads((OUT / (root + file)).read_bytes())
        expect(root.split("/")[0], root.split("/")[0], [],
               **{split: [[name + ".jpg", -1] for name in found[key]] for split, key in (("database", "imlist"), ("query", "qimlist"))})


def cub():
    root = "cub/CUB_200_2011/"
    classes = ["001.Black_footed_Albatross", "002.Laysan_Albatross"]
    rows = [(1, 1, 0), (2, 1, 1), (3, 2, 1), (4, 2, 0), (5, 2, 1)]
    files = {n: f"{classes[c - 1]}/{classes[c - 1][4:]}_{n:04}_{796000 + n}.jpg" for n, c, _ in rows}
    write(root + "classes.txt", "".join(f"{i} {c}\n" for i, c in enumerate(classes, 1)))
    write(root + "images.txt", "".join(f"{n} {files[n]}\n" for n, _, _ in rows))
    write(root + "image_class_labels.txt", "".join(f"{n} {c}\n" for n, c, _ in rows))
    write(root + "train_test_split.txt", "".join(f"{n} {t}\n" for n, _, t in rows))
    for n, c, _ in rows:
        picture(root + "images/" + files[n], 80 * c)
    expect("cub", "cub", classes, **{s: [[files[n], c - 1] for n, c, t in rows if t == is_train] for s, is_train in (("train", 1), ("test", 0))})


def fgvc():
    root = "fgvc/fgvc-aircraft-2013b/data/"
    variants = ["707-320", "Challenger 600", "F/A-18"]
    lists = {"train": [("1025794", 0), ("1340192", 2)], "val": [("0056978", 1)], "test": [("0062765", 1), ("1514522", 0)]}
    lists["trainval"] = lists["train"] + lists["val"]
    write(root + "variants.txt", "".join(v + "\n" for v in variants))
    for split, rows in lists.items():
        write(root + f"images_variant_{split}.txt", "".join(f"{n} {variants[c]}\n" for n, c in rows))
        for n, c in rows:
            picture(root + f"images/{n}.jpg", 70 * c)
    expect("fgvc", "fgvc", variants, **{s: [[n + ".jpg", c] for n, c in rows] for s, rows in lists.items()})


def pets():
    root = "pets/oxford-iiit-pet/"
    classes = ["Abyssinian", "american_bulldog", "yorkshire_terrier"]
    lists = {"trainval": [(0, 100), (0, 101), (1, 7), (2, 2)], "test": [(0, 1), (1, 12), (2, 190)]}
    for split, rows in lists.items():
        write(root + f"annotations/{split}.txt", "".join(f"{classes[c]}_{n} {c + 1} {1 if c == 0 else 2} 1\n" for c, n in rows))
        for c, n in rows:
            picture(root + f"images/{classes[c]}_{n}.jpg", 90 * c)
    rows = {s: [[f"{classes[c]}_{n}.jpg", c] for c, n in r] for s, r in lists.items()}
    expect("pets", "pets", classes, train=rows["trainval"], test=rows["test"])


def food():
    root = "food/food-101/"
    classes = ["apple_pie", "waffles"]
    lists = {"train": ["apple_pie/1005649", "apple_pie/1014775", "waffles/1015085"], "test": ["apple_pie/1011328", "waffles/101606"]}
    write(root + "meta/classes.txt", "".join(c + "\n" for c in classes))
    write(root + "meta/labels.txt", "Apple pie\nWaffles\n")
    for split, rows in lists.items():
        write(root + f"meta/{split}.json", json.dumps({c: [r for r in rows if r.startswith(c)] for c in classes}))
        if split == "train":  # both are published; either will do
            write(root + f"meta/{split}.txt", "".join(r + "\n" for r in rows))
        for i, row in enumerate(rows):
            picture(root + f"images/{row}.jpg", 50 * i)
    expect("food", "food", classes, **{s: [[r + ".jpg", classes.index(r.split("/")[0])] for r in rows] for s, rows in lists.items()})


def dtd():
    root = "dtd/dtd/dtd/"
    lists = {"train1": ["banded/banded_0004.jpg", "zigzagged/zigzagged_0005.jpg"], "val1": ["banded/banded_0002.jpg", "zigzagged/zigzagged_0007.jpg"],
             "test1": ["banded/banded_0019.jpg", "zigzagged/zigzagged_0046.jpg"], "train2": ["zigzagged/zigzagged_0046.jpg", "banded/banded_0002.jpg"]}
    for split, rows in lists.items():
        write(root + f"labels/{split}.txt", "".join(r + "\n" for r in rows))
        for i, row in enumerate(rows):
            picture(root + "images/" + row, 100 * i)
    expect("dtd", "dtd", ["banded", "zigzagged"],
           **{s.removesuffix("1"): [[r, int(r.startswith("z"))] for r in rows] for s, rows in lists.items()})


EUROSAT = {"AnnualCrop": 3000, "Forest": 3000, "HerbaceousVegetation": 3000, "Highway": 2500, "Industrial": 2500, "Pasture": 2000,
           "PermanentCrop": 2500, "Residential": 3000, "River": 2500, "SeaLake": 3000}


def eurosat_split(counts):
    files = [f"{name}/{file}" for name in sorted(counts) for file in sorted(f"{name}_{i}.jpg" for i in range(1, counts[name] + 1))]
    labels = [sorted(counts).index(f.split("/")[0]) for f in files]
    train, test = next(StratifiedShuffleSplit(n_splits=1, train_size=0.8, random_state=42).split(labels, labels))
    return [[files[i], labels[i]] for i in train], [[files[i], labels[i]] for i in test]


def eurosat():
    counts = {name: 5 + i % 3 for i, name in enumerate(EUROSAT)}
    for name, count in counts.items():
        for i in range(1, count + 1):
            write(f"eurosat/2750/{name}/{name}_{i}.jpg", b"")
    train, test = eurosat_split(counts)
    expect("eurosat", "eurosat", sorted(counts), train=train, test=test)
    train, test = eurosat_split(EUROSAT)
    # Of the whole: the first hundred of both, and sums that notice any other order of the rest.
    EXPECTED["eurosat_whole"] = {"counts": EUROSAT} | {
        name: {"size": len(rows), "first": [f for f, _ in rows[:100]],
               "sum": sum((i + 1) * int(f.rsplit("_", 1)[1][:-4]) * (label + 1) for i, (f, label) in enumerate(rows)) % (1 << 32)}
        for name, rows in (("train", train), ("test", test))}


def imagenet():
    synsets = ["n02119789", "n01440764", "n02084071", "n03000134"]  # by the devkit's number; the third is no leaf
    root = "imagenet/"
    mat(root + "ILSVRC2012_devkit_t12/data/meta.mat",
        synsets=records(ILSVRC2012_ID=[1.0, 2.0, 1001.0, 3.0], WNID=synsets, words=["kit fox", "tench", "dog", "fence"], gloss=["a"] * 4,
                        num_children=[0.0, 0.0, 5.0, 0.0]).T)
    truth = [2, 3, 1, 2]
    write(root + "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt", "".join(f"{t}\n" for t in truth))
    for i, _ in enumerate(truth, 1):
        picture(root + f"val/ILSVRC2012_val_{i:08}.JPEG", 50 * i)
    meta = load(root + "ILSVRC2012_devkit_t12/data/meta.mat")["synsets"]
    of = {int(s["ILSVRC2012_ID"]): str(s["WNID"]) for s in meta if int(s["num_children"]) == 0}
    classes = sorted(of.values())
    train = [f"{name}/{name}_{i}.JPEG" for name in classes for i in (1, 10)]
    for row in train:
        picture(root + "train/" + row, len(row))
    val = [[f"ILSVRC2012_val_{i:08}.JPEG", classes.index(of[t])] for i, t in enumerate(truth, 1)]
    expect("imagenet", "imagenet", classes, train=[[r, classes.index(r.split("/")[0])] for r in train], val=val, test=val)
    # As Kaggle packs it.
    root = "imagenet_kaggle/"
    write(root + "LOC_synset_mapping.txt", "".join(f"{c} some words\n" for c in classes))
    write(root + "LOC_val_solution.csv", "ImageId,PredictionString\n" + "".join(
        f"ILSVRC2012_val_{i:08},{of[t]} 85 1 499 272\n" for i, t in reversed(list(enumerate(truth, 1)))))
    for i, _ in enumerate(truth, 1):
        write(root + f"ILSVRC/Data/CLS-LOC/val/ILSVRC2012_val_{i:08}.JPEG", b"")
    expect("imagenet_kaggle", "imagenet_kaggle", classes, val=val)
    root = "imagenet100/"
    for name in ("train.X1/n01440764/n01440764_36.JPEG", "train.X1/n01443537/n01443537_2.JPEG", "train.X2/n01484850/n01484850_7.JPEG",
                 "val.X/n01440764/ILSVRC2012_val_00000293.JPEG", "val.X/n01484850/ILSVRC2012_val_00002338.JPEG"):
        write(root + name, b"")
    write(root + "train.X3/.keep", b"")
    expect("imagenet100", "imagenet100", ["n01440764", "n01443537", "n01484850"],
           train=[["train.X1/n01440764/n01440764_36.JPEG", 0], ["train.X1/n01443537/n01443537_2.JPEG", 1], ["train.X2/n01484850/n01484850_7.JPEG", 2]],
           val=[["val.X/n01440764/ILSVRC2012_val_00000293.JPEG", 0], ["val.X/n01484850/ILSVRC2012_val_00002338.JPEG", 2]])


class Python2(pickle._Pickler):
    """Protocol 2 as Python 2 wrote it: bytes and text alike are strings of bytes."""
    dispatch = dict(pickle._Pickler.dispatch)

    def save_text(self, value):
        raw = value.encode("latin1") if isinstance(value, str) else value
        self.write(b"U" + bytes([len(raw)]) + raw if len(raw) < 256 else b"T" + len(raw).to_bytes(4, "little") + raw)
        self.memoize(value)

    dispatch[bytes] = dispatch[str] = save_text


def python2(value):
    out = io.BytesIO()
    Python2(out, 2).dump(value)
    raw = out.getvalue().replace(b"cnumpy._core.", b"cnumpy.core.")
    again = pickle.loads(raw, encoding="latin1")
    assert again.keys() == value.keys() and all(np.array_equal(again[k], value[k]) for k in value if k != "batch_label")
    return raw


def cifar():
    random = np.random.RandomState(7)
    root = "cifar10/cifar-10-batches-py/"
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    rows = {}
    for file, labels in [("data_batch_1", [6]), ("data_batch_2", [9, 3]), ("test_batch", [3, 8])]:
        data = random.randint(0, 256, (len(labels), 3072)).astype(np.uint8)
        write(root + file, python2({"batch_label": file, "labels": labels, "data": data, "filenames": ["x.png"] * len(labels)}))
        rows[file] = [[f"{file}/{i:05}", label, data[i, [0, 1024, 2048, 3071]].tolist()] for i, label in enumerate(labels)]
    write(root + "batches.meta", python2({"num_cases_per_batch": 10000, "label_names": names, "num_vis": 3072}))
    expect("cifar10", "cifar10", names, train=rows["data_batch_1"] + rows["data_batch_2"], test=rows["test_batch"])
    root = "cifar100/cifar-100-python/"
    fine = [f"name {i}" for i in range(100)]
    rows = {}
    for file, labels in [("train", [19, 99]), ("test", [49])]:
        data = random.randint(0, 256, (len(labels), 3072)).astype(np.uint8)
        write(root + file, python2({"filenames": ["x.png"] * len(labels), "batch_label": file, "fine_labels": labels, "coarse_labels": [1] * len(labels),
                                    "data": data}))
        rows[file] = [[f"{file}/{i:05}", label, data[i, [0, 1024, 2048, 3071]].tolist()] for i, label in enumerate(labels)]
    write(root + "meta", python2({"fine_label_names": fine, "coarse_label_names": ["c"]}))
    expect("cifar100", "cifar100", fine, **rows)


def texts():
    write("trec/train_5500.label", b"DESC:manner How did serfdom develop ?\nENTY:cremat What is a sister\xf0city ?\nABBR:exp What is NASA ?\n")
    write("trec/TREC_10.label", "NUM:dist How far is it ?\nLOC:city Where ?\n")
    expect("trec", "trec", ["ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"],
           train=[["1", 2, "How did serfdom develop ?"], ["2", 1, "What is a sister city ?"], ["3", 0, "What is NASA ?"]],
           test=[["1", 5, "How far is it ?"], ["2", 4, "Where ?"]])
    write("sst/trees/train.txt", "(3 (2 (2 The) (2 Rock)) (4 (3 (2 is) (4 great)) (2 .)))\n(0 (1 bad) (2 -LRB-))\n")
    write("sst/trees/dev.txt", "(2 (2 It) (2 's))\n")
    write("sst/trees/test.txt", "(4 (3 Fine) (2 .))\n")
    expect("sst", "sst", [], train=[["1", 3, "The Rock is great ."], ["2", 0, "bad -LRB-"]], val=[["1", 2, "It 's"]], test=[["1", 4, "Fine ."]])
    write("agnews/ag_news_csv/classes.txt", "World\nSports\nBusiness\nSci/Tech\n")
    write("agnews/ag_news_csv/train.csv", '"3","Wall St. Bears","Short-sellers, ""dwindling"" band"\n"1","Title","Two\\\\lines"\n')
    write("agnews/ag_news_csv/test.csv", '"4","A","B"\n')
    expect("agnews", "agnews", ["World", "Sports", "Business", "Sci/Tech"],
           train=[["1", 2, 'Wall St. Bears Short-sellers, "dwindling" band'], ["2", 0, "Title Two\\\\lines"]], test=[["1", 3, "A B"]])
    write("banking77/banking_data/categories.json", '["card_arrival", "Refund_not_showing_up", "request_refund"]')
    write("banking77/banking_data/train.csv", 'text,category\n"Where, is it?",card_arrival\nWhy?,Refund_not_showing_up\nBack please,request_refund\n')
    write("banking77/banking_data/test.csv", "text,category\nHow long?,request_refund\n")
    expect("banking77", "banking77", ["card_arrival", "Refund_not_showing_up", "request_refund"],
           train=[["2", 0, "Where, is it?"], ["3", 1, "Why?"], ["4", 2, "Back please"]], test=[["2", 2, "How long?"]])
    write("tweeteval/emoji/mapping.txt", "0\t\u2764\t_red_heart_\n1\t\U0001F60D\t_smiling_face_with_hearteyes_\n")
    for split, rows in (("train", [(1, "Sunday @ Park"), (0, "love\u2026")]), ("val", [(0, "a")]), ("test", [(1, "b")])):
        write(f"tweeteval/emoji/{split}_text.txt", "".join(t + "\n" for _, t in rows))
        write(f"tweeteval/emoji/{split}_labels.txt", "".join(f"{n}\n" for n, _ in rows))
    expect("tweeteval", "tweeteval", ["_red_heart_", "_smiling_face_with_hearteyes_"], train=[["1", 1, "Sunday @ Park"], ["2", 0, "love\u2026"]],
           val=[["1", 0, "a"]], test=[["1", 1, "b"]])


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    for make in (flowers, cars, cub, fgvc, pets, food, dtd, eurosat, imagenet, cifar, revisited, texts):
        make()
    write("layouts.json", json.dumps(EXPECTED, indent=0) + "\n")


if __name__ == "__main__":
    main()
