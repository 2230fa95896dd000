// SPDX-License-Identifier: Apache-2.0
// The globals that a checkpoint may name. None of them is ever imported or called: each only tells
// the machine of pickle.cpp how to read the data that follows. To accept one more container, add
// its name to kHarmless.
#include <algorithm>
#include <string>
#include <unordered_map>

#include "fungi/checkpoint/pickle.h"

namespace fungi {
namespace {

using enum GlobalRole;

constexpr PickleGlobal kStructure[] = {
    {"collections.OrderedDict", ordered_dict, {}},
    {"torch._utils._rebuild_tensor", rebuild_bare, {}},
    {"torch._utils._rebuild_tensor_v2", rebuild_tensor, {}},
    {"torch._utils._rebuild_tensor_v3", rebuild_typed, {}},
    {"torch._utils._rebuild_parameter", pass_through, {}},
    {"torch._utils._rebuild_parameter_with_state", pass_through, {}},
    {"torch._tensor._rebuild_from_type_v2", rebuild_subclass, {}},
    {"torch.Size", pass_through, {}},
    {"torch.jit._pickle.build_tensorlist", pass_through, {}},
    {"torch.jit._pickle.restore_type_tag", pass_through, {}},
};

constexpr PickleGlobal kScriptClass = {"__torch__", script_class, {}};

struct NamedType {
  const char* storage;  // class in torch, torch.cuda and torch.storage
  const char* name;     // constant in torch
  std::optional<DType> type;
  size_t size;
};
constexpr NamedType kTypes[] = {
    {"FloatStorage", "float32", DType::f32, 4},
    {"HalfStorage", "float16", DType::f16, 2},
    {"BFloat16Storage", "bfloat16", DType::bf16, 2},
    {"DoubleStorage", "float64", DType::f64, 8},
    {"LongStorage", "int64", DType::i64, 8},
    {"IntStorage", "int32", DType::i32, 4},
    {"ShortStorage", "int16", DType::i16, 2},
    {"CharStorage", "int8", DType::i8, 1},
    {"ByteStorage", "uint8", DType::u8, 1},
    {"BoolStorage", "bool", DType::boolean, 1},
    {"UntypedStorage", "", DType::u8, 1},
    {"ComplexFloatStorage", "complex64", {}, 8},
    {"ComplexDoubleStorage", "complex128", {}, 16},
    {"", "uint16", {}, 2},
    {"", "uint32", {}, 4},
    {"", "uint64", {}, 8},
};

constexpr const char* kHarmless[] = {
    // Python
    "argparse.Namespace",
    "types.SimpleNamespace",
    "collections.defaultdict",
    "collections.Counter",
    "collections.deque",
    "builtins.set",
    "builtins.frozenset",
    "builtins.list",
    "builtins.dict",
    "builtins.tuple",
    "builtins.object",
    "builtins.int",
    "builtins.float",
    "builtins.str",
    "builtins.bool",
    "builtins.bytes",
    "builtins.bytearray",
    "builtins.complex",
    "builtins.slice",
    "builtins.range",
    "__builtin__.set",
    "__builtin__.frozenset",
    "__builtin__.list",
    "__builtin__.dict",
    "__builtin__.tuple",
    "__builtin__.object",
    "__builtin__.int",
    "__builtin__.long",
    "__builtin__.float",
    "__builtin__.str",
    "__builtin__.unicode",
    "__builtin__.bool",
    "__builtin__.bytearray",
    "__builtin__.complex",
    "_codecs.encode",
    "copy_reg._reconstructor",
    "copyreg._reconstructor",
    "datetime.datetime",
    "datetime.date",
    "datetime.timedelta",
    "pathlib.Path",
    "pathlib.PosixPath",
    "pathlib.PurePosixPath",
    "pathlib.WindowsPath",
    "pathlib.PureWindowsPath",
    // numpy
    "numpy.dtype",
    "numpy.ndarray",
    "numpy.core.multiarray.scalar",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray.scalar",
    "numpy._core.multiarray._reconstruct",
    "numpy.core.numeric._frombuffer",
    "numpy._core.numeric._frombuffer",
    // torch
    "torch.device",
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    "torch.nn.parameter.Buffer",
    "torch.serialization._get_layout",
    "torch.jit._pickle.build_intlist",
    "torch.jit._pickle.build_doublelist",
    "torch.jit._pickle.build_boollist",
    // configurations of the common training tools
    "yacs.config.CfgNode",
    "fvcore.common.config.CfgNode",
    "easydict.EasyDict",
    "addict.addict.Dict",
    "addict.Dict",
    "mmcv.utils.config.ConfigDict",
    "mmengine.config.config.ConfigDict",
    "munch.Munch",
    "ml_collections.config_dict.ConfigDict",
    "ml_collections.config_dict.config_dict.ConfigDict",
    "omegaconf.dictconfig.DictConfig",
    "omegaconf.listconfig.ListConfig",
    "omegaconf.base.ContainerMetadata",
    "omegaconf.base.Metadata",
    "omegaconf.nodes.AnyNode",
    "omegaconf.nodes.StringNode",
    "omegaconf.nodes.IntegerNode",
    "omegaconf.nodes.FloatNode",
    "omegaconf.nodes.BooleanNode",
    "typing.Any",
    "pytorch_lightning.utilities.parsing.AttributeDict",
    "lightning.fabric.utilities.data.AttributeDict",
    "lightning_fabric.utilities.data.AttributeDict",
    "pytorch_lightning.callbacks.model_checkpoint.ModelCheckpoint",
};

using Table = std::unordered_map<std::string, PickleGlobal>;

Table make_table() {
  Table table;
  for (const PickleGlobal& global : kStructure) table.emplace(global.name, global);
  for (const char* name : kHarmless) table.emplace(name, PickleGlobal{name, harmless, {}});
  for (const NamedType& known : kTypes) {
    if (*known.storage != '\0')
      for (const char* module : {"torch.", "torch.cuda.", "torch.storage."})
        table.emplace(std::string(module) + known.storage,
                      PickleGlobal{known.storage, storage_type, known.type, known.size});
    if (*known.name != '\0')
      table.emplace(std::string("torch.") + known.name,
                    PickleGlobal{known.name, element_type, known.type, known.size});
  }
  return table;
}

// By the beginning of a global that only they need.
constexpr std::pair<std::string_view, UnreadTensors> kUnread[] = {
    {"torch._utils._rebuild_qtensor",
     {"quantised tensors",
      "save the model before it was quantised, or call .dequantize() on them"}},
    {"torch.Q", {"quantised tensors", "save the model before it was quantised"}},
    {"torch._utils._rebuild_sparse", {"sparse tensors", "save them after .to_dense()"}},
    {"torch._utils._rebuild_nested", {"nested tensors", "save the tensors in them by name"}},
    {"torch._utils._rebuild_meta",
     {"tensors without values, of the device 'meta'",
      "save the model after its weights are loaded"}},
    {"torch.float8", {"tensors of 8-bit floats", "save them after .float() or .bfloat16()"}},
    {"torch.float4", {"tensors of 4-bit floats", "save them after .float() or .bfloat16()"}},
};

}  // namespace

const UnreadTensors* find_unread(std::string_view module, std::string_view name) {
  const std::string whole = std::string(module) + '.' + std::string(name);
  for (const auto& [start, tensors] : kUnread)
    if (whole.starts_with(start)) return &tensors;
  return nullptr;
}

const PickleGlobal* find_global(std::string_view module, std::string_view name) {
  constexpr size_t kLongest = 200;
  if (module.size() + name.size() > kLongest) return nullptr;
  if (module == "__torch__" || module.starts_with("__torch__.")) return &kScriptClass;
  static const Table table = make_table();
  const auto found = table.find(std::string(module) + '.' + std::string(name));
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace fungi
