#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether every ViT-like model of timm, and those of transformers, is run right or refused.

    tools/sweep_models.py FUNGI FOLDER [PART OF A NAME ...]
    tools/sweep_models.py --table FOLDER > docs/models.md

Makes each model with random weights, lets FUNGI extract two pictures with it, and compares with what
the model itself gives. A model of timm keeps its width, heads and input size, and has two blocks
where its code lets it; those of transformers are small. Each file is tried beside its config.json,
alone under the name of its architecture, and alone under a name that says nothing. FOLDER gets
results.jsonl, which a later call goes on with; --table prints what docs/models.md says. A
developer's tool: needs timm, transformers and torch.
"""
import importlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import zlib

import numpy as np

TOLERANCE = 2e-5
MODULES = ("vision_transformer deit eva beit naflexvit vision_transformer_hybrid "
           "vision_transformer_relpos vision_transformer_sam cait convit crossvit deepseek_vit "
           "gemma4_vit hiera levit pit qwen3_vit tiny_vit tnt vitamin volo xcit").split()
TYPES = ("vit deit vit_mae vit_msn dinov2 dinov2_with_registers dinov3_vit beit data2vec-vision ijepa "
         "yolos vitdet vitpose_backbone dpt flava_image_model clip clip_vision_model "
         "chinese_clip chinese_clip_vision_model metaclip_2 metaclip_2_vision_model siglip "
         "siglip_vision_model siglip2_vision_model altclip altclip_vision_model clipseg xclip owlvit "
         "groupvit git git_vision_model blip blip_vision_model blip_2_vision_model "
         "aimv2 aimv2_vision_model mlcd_vision_model idefics2_vision idefics3_vision "
         "kosmos_2_vision_model internvl_vision tipsv2_vision_model rf_detr_dinov2 videomae vivit "
         "timesformer vilt sam_vision_model llama4_vision_model phi4_multimodal_vision "
         "bridgetower_vision_model seggpt videoprism_vision_model").split()
PICTURES = 2
KINDS = ("config", "named", "bare")  # of files
# What is added to the stream that all blocks share is small, so that a wrong epsilon shows.
ADDED = re.compile(r"embed|token|attn\.proj|out_proj|o_proj|fc2|w3|output\.dense|c_proj|down_proj|"
                   r"weights_out|mlp\.2")


def leave_out_first_values():
    """Weights get values of their own later; to draw the usual ones takes most of the time."""
    import timm.layers.weight_init
    import torch
    torch.set_num_threads(1)
    for module, name in ((torch.nn.init, "kaiming_uniform_"), (torch.nn.init, "_no_grad_uniform_"),
                         (torch.nn.init, "_no_grad_normal_"),
                         (torch.nn.init, "_no_grad_trunc_normal_"),
                         (timm.layers.weight_init, "_trunc_normal_")):
        assert hasattr(module, name), name
        setattr(module, name, lambda tensor, *rest, **more: tensor)


def randomise(model, seed):
    import torch
    g = torch.Generator().manual_seed(seed)
    drawn = torch.randn(1000003, generator=g)  # a prime: no two rows of a matrix are alike
    with torch.no_grad():
        for name, p in model.named_parameters():
            start = zlib.crc32(name.encode()) % len(drawn)
            r = drawn.roll(-start).repeat(p.numel() // len(drawn) + 1)[:p.numel()].view(p.shape)
            small = 0.01 if ADDED.search(name) and "norm" not in name else 1
            if "norm" in name or "ln_" in name or re.search(r"gamma|lambda|layer_scale", name):
                value = 0.2 * r if name.endswith("bias") else 1 + 0.3 * r
            elif p.dim() <= 1 or "token" in name or "pos" in name:
                value = (0.2 if p.dim() <= 1 else 1) * small * r
            else:
                value = small * r / p[0].numel() ** 0.5
            p.copy_(value.to(p.dtype))
    return model.eval()


def write_pictures(folder, side):
    from PIL import Image
    folder.mkdir(parents=True)
    random = np.random.default_rng(side)
    pictures = random.integers(0, 256, (PICTURES, side, side, 3), dtype=np.uint8)
    for i, picture in enumerate(pictures):
        Image.fromarray(picture).save(folder / f"{i}.png")
    return pictures


class Run:
    """One file and what fungi makes of it."""

    def __init__(self, fungi, work, file, side):
        store = work / "store"
        shutil.rmtree(store, ignore_errors=True)
        command = [fungi, "extract", work / "pictures", "-m", file, "-o", store, "--objectives",
                   "none", "--precision", "f32", "--json", "--set", "mean=0.5", "std=0.5",
                   f"resize={side}"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.rows = None
        self.said = done.stderr.strip().split("\n")[0].replace(str(file), "FILE")
        if done.returncode == 0:
            self.rows = np.load(store / "embedding-00000.npy").astype(np.float64)
            self.said = " ".join(n for n in json.loads(done.stdout)["notes"] if "assumed" in n)
        elif done.returncode != 1:
            self.said = f"status {done.returncode}: {self.said}"

    def outcome(self, truth):
        if self.rows is None:
            return {"is": "refused" if not self.said.startswith("status") else "broken",
                    "said": self.said}
        error = None
        if truth.shape == self.rows.shape:
            size = np.linalg.norm(truth, axis=1)
            error = float(np.max(np.linalg.norm(self.rows - truth, axis=1) / size))
        right = error is not None and error < TOLERANCE
        return {"is": ("right" if right else "wrong") + (", noted" if self.said else ""),
                "said": self.said, "error": error}


def try_files(fungi, work, folder, name, side, truth):
    """An outcome for each of KINDS, of the model saved in folder; truth() gives its rows."""
    weights = folder / "model.safetensors"
    alone = work / "alone"
    alone.mkdir(exist_ok=True)
    runs = {"config": Run(fungi, work, folder, side)}
    for kind, file in (("named", alone / f"{name}.safetensors"), ("bare", alone / "x.safetensors")):
        weights.rename(file)
        runs[kind] = Run(fungi, work, file, side)
        file.rename(weights)
    rows = truth() if any(run.rows is not None for run in runs.values()) else None
    return {kind: run.outcome(rows) for kind, run in runs.items()}


def pixels(pictures):
    import torch
    return torch.from_numpy(pictures.astype(np.float64) / 255).permute(0, 3, 1, 2) * 2 - 1


def timm_names():
    import timm
    from timm.models import _registry
    module = {name: _registry._model_entrypoints[name].__module__.split(".")[-1]
              for name in timm.list_models()}
    return [name for wanted in MODULES for name in module if module[name] == wanted]


def sweep_timm(fungi, work, name):
    import timm
    import torch
    import timm.models
    model = None
    for args in ({"depth": 2}, {}):
        try:
            model = timm.create_model(name, **args)
            break
        except Exception as error:  # each has its own words for an argument that it does not know
            failed = error
    if model is None:
        raise failed
    if sum(p.numel() for p in model.parameters()) > 1.2e9:
        return {"skipped": "too large for this machine"}
    randomise(model, zlib.crc32(name.encode()))
    side = model.pretrained_cfg["input_size"][1]
    pictures = write_pictures(work / "pictures", side)
    timm.models.save_for_hf(model, work / "model", model_args=args or None, safe_serialization=True)

    def truth():
        projected = ("clip" in name or "_pe_core" in name) and model.num_classes not in (0, 1000)
        with torch.no_grad():
            whole = model.double()
            features = whole.forward_features(pixels(pictures))
            return whole.forward_head(features, pre_logits=not projected).numpy()

    return {"args": args, **try_files(fungi, work, work / "model", name, side, truth)}


TINY = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32,
        "intermediate_size": 256, "patch_size": 8, "projection_dim": 48, "num_frames": 2,
        "embed_dim": 128, "num_channels": 3, "crop_size": 32, "pretrain_image_size": 32}
TEXT = {"vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 64, "max_position_embeddings": 16, "projection_dim": 48,
        "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}


def embeddings(model, pictures):
    """What a transformer of Hugging Face gives that may be called the embedding of a picture."""
    import torch
    x = pixels(pictures)
    whole = model.double()
    found = {}
    with torch.no_grad():
        if hasattr(whole, "get_image_features"):
            out = whole.get_image_features(pixel_values=x)
            found["projected"] = out if torch.is_tensor(out) else out.pooler_output
        else:
            out = whole(pixel_values=x)
            found["class token"] = out.last_hidden_state[:, 0]
            found["class and distillation token"] = out.last_hidden_state[:, :2].mean(1)
            if any("post_layernorm" in name or name.startswith("head.")  # CLIP's, AIMv2's
                   for name, _ in whole.named_parameters()):
                found["class token"] = out.get("pooler_output", found["class token"])
    return {name: value.numpy() for name, value in found.items()}


def model_of(config):
    import transformers
    try:
        return transformers.AutoModel.from_config(config)
    except ValueError:  # the vision part of a larger model
        module = importlib.import_module(
            type(config).__module__.replace("configuration_", "modeling_"))
        fitting = [value for name, value in vars(module).items() if isinstance(value, type)
                   and issubclass(value, transformers.PreTrainedModel) and "PreTrained" not in name
                   and getattr(value, "config_class", None) is type(config)]
        return min(fitting, key=lambda c: len(c.__name__))(config)


def sweep_transformers(fungi, work, kind):
    import transformers
    parts = {"vision_config": TINY, "text_config": TEXT, "projection_dim": 48}
    config_class = transformers.CONFIG_MAPPING[kind]
    whole = "vision_config" in (getattr(config_class, "sub_configs", None) or {})
    square = {"image_size": [TINY["image_size"]] * 2} if kind == "yolos" else {}
    model = model_of(config_class(**(parts if whole else {**TINY, **square})))
    randomise(model, zlib.crc32(kind.encode()))
    if hasattr(model.config, "mask_ratio"):
        model.config.mask_ratio = 0.0
    pictures = write_pictures(work / "pictures", TINY["image_size"])
    model.save_pretrained(work / "model")

    def truth():
        found = embeddings(model, pictures)
        twice = "distillation_token" in " ".join(name for name, _ in model.named_parameters())
        return found.get("projected", found.get("class and distillation token" if twice else
                                                "class token"))

    return try_files(fungi, work, work / "model", kind, TINY["image_size"], truth)


def reason(outcome, name):
    text = re.sub(r"^fungi: \S+: ", "", outcome["said"]).replace(name, "NAME")
    text = re.sub(r" \(the first is .*", "", text)
    return re.sub(r"of the \d+ tensors", "of the tensors", re.sub(r"^\d+ patch", "the patch", text))


def cell(outcome, name):
    return outcome["is"] + (": " + reason(outcome, name) if outcome["is"] == "refused" else "")


INTRODUCTION = f"""# Models that were tried

Made by `tools/sweep_models.py`: do not edit. It makes each model of timm and transformers that looks
like a ViT with random weights, lets `fungi extract` compute the embeddings of two pictures in f32,
and compares them with what the model's own code gives in f64. Text and audio models are not among
them: `tests/golden/backbone` has theirs.

A model of timm keeps its width, its heads and its input size, and has two blocks where its code can
be told so. Those of transformers are small: 4 heads of 32, which nothing but `config.json` tells.
Each file is tried beside the `config.json` that its library writes, and alone: for timm once with
the name of the architecture as its own, and once as `x.safetensors`.

`right`: within {TOLERANCE:g} of the embedding's length, and nothing was said. `right, noted`: a note named
what was assumed. `wrong, noted`: what the note named was otherwise. `wrong`: nothing was said.
`refused`: the message.
"""


def print_table():
    print(INTRODUCTION)
    lines = [json.loads(line) for line in open(pathlib.Path(sys.argv[2]) / "results.jsonl")]
    for library, of_names in (("timm", "Architectures"), ("transformers", "Types (`model_type`)")):
        groups, skipped, largest = {}, {}, 0.0
        for line in (line for line in lines if line["library"] == library):
            if "skipped" in line:
                skipped.setdefault(line["skipped"], []).append(line["name"])
                continue
            largest = max([largest] + [line[k]["error"] for k in KINDS if "right" in line[k]["is"]])
            shown = KINDS if library == "timm" else ("config", "bare")
            key = tuple(cell(line[k], line["name"]) for k in shown)
            groups.setdefault(key, []).append(line["name"])
        versions = sorted({line["version"] for line in lines if line["library"] == library})
        print(f"## {library} {', '.join(versions)}\n\nThe largest difference of those that are right "
              f"is {largest:.1g} of the embedding's length.\n")
        heads = ["beside its `config.json`", "alone, named after it", "alone"]
        heads = heads if library == "timm" else [heads[0], heads[2]]
        print(f"| {' | '.join(heads)} | {of_names} |\n|{'---|' * (len(heads) + 1)}")
        for key, names in sorted(groups.items(), key=lambda g: (g[0][0] != "right", -len(g[1]), g)):
            print(f"| {' | '.join(key)} | {' '.join(f'`{name}`' for name in names)} |")
        if skipped:
            print("\nNot made:\n")
        for why, names in sorted(skipped.items()):
            listed = ", ".join(f"`{name}`" for name in names)
            print(textwrap.fill(f"{why}: {listed}", 100, initial_indent="- ",
                                subsequent_indent="  ", break_long_words=False,
                                break_on_hyphens=False))
        print()


def main():
    if sys.argv[1] == "--table":
        return print_table()
    import timm
    import transformers
    fungi, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.jsonl"
    done = {json.loads(line)["name"] for line in open(results)} if results.exists() else set()
    leave_out_first_values()
    todo = [("timm", timm.__version__, sweep_timm, name) for name in timm_names()]
    todo += [("transformers", transformers.__version__, sweep_transformers, name) for name in TYPES]
    for library, version, sweep, name in todo:
        wanted = not sys.argv[3:] or any(part in f"{library}/{name}" for part in sys.argv[3:])
        if name in done or not wanted:
            continue
        work = folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        try:
            found = sweep(fungi, work, name)
        except Exception as error:  # of the model's own code: a line of the table
            found = {"skipped": f"{type(error).__name__}: {error}".split("\n")[0]}
        with open(results, "a") as out:
            out.write(json.dumps({"library": library, "version": version, "name": name, **found})
                      + "\n")
        print(name, *(f"{kind}: {found[kind]['is']};" for kind in KINDS if kind in found),
              found.get("skipped", ""), flush=True)
        shutil.rmtree(work, ignore_errors=True)


main()
