// SPDX-License-Identifier: Apache-2.0
// A pickle read as data. The machine knows the opcodes of protocols 0 to 5 and a short list of
// globals (pickle_globals.cpp); it imports nothing, calls nothing, and refuses every other global
// by name. Values live in one table and refer to each other by number, so hostile nesting costs no
// stack. Internal to the library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/checkpoint/strided.h"

namespace fungi {

// What a global may mean here.
enum class GlobalRole : uint8_t {
  ordered_dict,      // called: a dict
  script_class,      // a class of a TorchScript archive; its state is a dict of attributes
  rebuild_bare,      // (storage, offset, shape, strides)
  rebuild_tensor,    // the same, requires_grad, hooks, and perhaps metadata
  rebuild_typed,     // the same with the element type before the metadata
  rebuild_subclass,  // (function, class, arguments, state)
  pass_through,      // returns its first argument; the others change no value
  storage_type,      // type in PickleGlobal::type
  element_type,
  harmless,  // known classes beside the weights; what such an object holds is kept as a dict
};

struct PickleGlobal {
  const char* name;  // "module.name"
  GlobalRole role;
  std::optional<DType> type;  // none: an element type that never holds weights
  size_t size = 0;            // bytes of that element type
};

// Null when the global is not known, which means: refused.
const PickleGlobal* find_global(std::string_view module, std::string_view name);

// Tensors of torch that are known but not read.
struct UnreadTensors {
  const char* what;  // "quantised tensors"
  const char* hint;
};
// By a global that only they need; null for every other.
const UnreadTensors* find_unread(std::string_view module, std::string_view name);

struct PickleStorage {
  std::string_view key;
  std::optional<DType> type;
  size_t element_size = 1;
  size_t count = 0;
  bool operator==(const PickleStorage&) const = default;
};

struct PickleTensor {
  size_t storage = 0;     // index into Pickle::storages
  Strided layout;         // type is set when readable
  bool negative = false;  // its values are those stored with the other sign
  bool listed = false;    // false: its element type never holds weights
};

struct PickleValue {
  // object: like a dict, an instance of a TorchScript class, or of a harmless one (`global`).
  // opaque: nothing that matters here.
  enum class Kind : uint8_t {
    opaque,
    integer,
    text,
    sequence,
    dict,
    global,
    object,
    storage,
    tensor
  };
  Kind kind = Kind::opaque;
  int64_t integer = 0;                   // integer; or index of the storage or tensor
  std::string_view text = {};            // text; digits or bytes of an integer beyond 64 bits
  const PickleGlobal* global = nullptr;  // global; object: its class, if harmless
  std::vector<uint32_t> items = {};      // sequence; dict: key, value, key, value, ...
};

struct Pickle {
  std::vector<PickleValue> values;
  std::vector<PickleStorage> storages;
  std::vector<PickleTensor> tensors;
  uint32_t root = 0;
  size_t length = 0;  // bytes up to and including the STOP opcode

  const PickleValue& operator[](uint32_t index) const { return values[index]; }
  bool is_text(uint32_t index, std::string_view text) const {
    return values[index].kind == PickleValue::Kind::text && values[index].text == text;
  }
};

// Reads one pickle from the start of `bytes`, which must outlive the result. place: the file, for
// messages.
Pickle unpickle(std::string_view bytes, const std::string& place);

}  // namespace fungi
