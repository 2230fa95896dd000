# SPDX-License-Identifier: Apache-2.0
"""A developer's test, which needs torch, timm, transformers and torchvision: networks in memory give the features of the files that their
libraries write, and torch's own embeddings. Run it with PYTHONPATH=build/python pytest python/tests/developers_test_torch.py."""
from __future__ import annotations

import numpy as np
import pytest

import fungi

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
PICTURES = [RNG.integers(0, 256, (70, 80, 3), np.uint8) for _ in range(3)]


def randomised(module):
    generator = torch.Generator().manual_seed(1)
    for parameter in module.parameters():
        parameter.data.copy_(torch.randn(parameter.shape, generator=generator) * 0.1 + (parameter.ndim == 1) * 0.5)
    return module.eval()


def same_as_the_file(module, folder, **options):
    held = fungi.Extractor(module, objectives="kl", precision="f32", **options)
    written = fungi.Extractor(folder, objectives="kl", precision="f32", **options)
    rows = held.transform(PICTURES)
    assert np.array_equal(rows, written.transform(PICTURES))
    assert held.notes == written.notes
    return held


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "deit_tiny_distilled_patch16_224", "vit_small_patch14_reg4_dinov2", "deit3_small_patch16_224",
                                  "vit_base_patch32_clip_224", "eva02_base_patch16_clip_224"])
def test_timm(name, tmp_path):
    timm = pytest.importorskip("timm")
    extra = {"img_size": 56} if "dinov2" in name else {}
    module = randomised(timm.create_model(name, num_classes=0, depth=2, **extra))
    timm.models.save_for_hf(module, tmp_path, model_args={"depth": 2, **extra})
    held = same_as_the_file(module, tmp_path)
    config = {**timm.data.resolve_model_data_config(module), "input_size": (3, *module.patch_embed.img_size)}
    transform = timm.data.create_transform(**config, is_training=False)
    import PIL.Image

    with torch.no_grad():
        expected = module(torch.stack([transform(PIL.Image.fromarray(p)) for p in PICTURES])).numpy()
    ours = held.extract(PICTURES)["embedding"]
    cosine = (ours * expected).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosine.min() > 0.9999


def test_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    for kind, config in ((transformers.ViTModel, transformers.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                                                       intermediate_size=64, image_size=32, patch_size=8)),
                         (transformers.Dinov2Model, transformers.Dinov2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                                                              mlp_ratio=2, image_size=28, patch_size=14)),
                         (transformers.CLIPVisionModelWithProjection, transformers.CLIPVisionConfig(
                             hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
                             projection_dim=16))):
        module = randomised(kind(config))
        folder = tmp_path / kind.__name__
        module.save_pretrained(folder)
        same_as_the_file(module, folder)


def test_texts(tmp_path):
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    module = randomised(transformers.BertModel(transformers.BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=40)))
    module.save_pretrained(tmp_path)
    texts = ["a b c", "d e f g h"]
    held = fungi.Extractor(module, objectives="kl", tokenizer=tmp_path)
    assert held.kind == "text"
    assert np.array_equal(held.transform(texts), fungi.Extractor(tmp_path, objectives="kl").transform(texts))
    with pytest.raises(fungi.Error, match="tokeni"):
        fungi.Extractor(module, objectives="kl")
    with pytest.raises(fungi.InputTypeError):
        held.transform([PICTURES[0]])


def test_torchvision(tmp_path):
    torchvision = pytest.importorskip("torchvision")
    module = randomised(torchvision.models.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64))
    torch.save(module.state_dict(), tmp_path / "model.pth")
    facts = {"heads": 4}
    held = fungi.Extractor(module, objectives="kl", precision="f32")
    written = fungi.Extractor(tmp_path / "model.pth", objectives="kl", precision="f32", facts=facts)
    assert np.array_equal(held.transform(PICTURES), written.transform(PICTURES))


def test_half_precision_and_tensors():
    timm = pytest.importorskip("timm")
    module = randomised(timm.create_model("vit_tiny_patch16_224", num_classes=0, depth=1))
    stack = torch.from_numpy(np.stack(PICTURES)).permute(0, 3, 1, 2)
    expected = fungi.Extractor(module, objectives="kl").transform(PICTURES)
    extractor = fungi.Extractor(module, objectives="kl")
    assert np.array_equal(extractor.transform(stack), expected)
    assert np.array_equal(extractor.transform(list(stack)), expected)
    assert np.array_equal(extractor.transform(stack.float() / 255), expected)
    rows = fungi.Extractor(module.to(torch.bfloat16), objectives="kl").transform(PICTURES)
    assert (rows * expected).sum(1).min() > 1.99


def test_data_loader():
    from torch.utils.data import DataLoader, Dataset

    timm = pytest.importorskip("timm")
    extractor = fungi.Extractor(randomised(timm.create_model("vit_tiny_patch16_224", num_classes=0, depth=1)), objectives="kl", threads=1)
    expected = extractor.transform(PICTURES)

    class Rows(Dataset):
        def __len__(self):
            return len(PICTURES)

        def __getitem__(self, i):
            return extractor.transform(PICTURES[i : i + 1])[0]

    rows = np.concatenate([batch.numpy() for batch in DataLoader(Rows(), batch_size=1, num_workers=2)])
    assert np.array_equal(rows, expected)
