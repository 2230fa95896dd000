// SPDX-License-Identifier: Apache-2.0
// What the accepted globals mean: dicts, tensors over storages, and objects. Nothing is
// executed; each case only rearranges values that were in the file.
#include <fmt/format.h>

#include "fungi/checkpoint/pickle_machine.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {

using Kind = PickleValue::Kind;

void PickleMachine::step_stack_global() {
  const uint32_t name = pop(), module = pop();
  if (pickle_[name].kind != Kind::text || pickle_[module].kind != Kind::text)
    broken("names a global by something else than text");
  push_global(pickle_[module].text, pickle_[name].text);
}

// REDUCE and NEWOBJ: a callable and its arguments.
void PickleMachine::step_call() {
  const uint32_t arguments = pop(), function = pop();
  if (pickle_[arguments].kind != Kind::sequence)
    broken("calls something without a tuple of arguments");
  charge(pickle_[arguments].items.size());
  const std::vector<uint32_t> items = pickle_[arguments].items;
  push(call(function, items));
}

// NEWOBJ_EX.
void PickleMachine::step_keyword_call() {
  const uint32_t keywords = pop();
  const bool any = pickle_[keywords].kind != Kind::dict || !pickle_[keywords].items.empty();
  step_call();
  if (!any) return;
  const PickleValue& made = pickle_[top()];
  if (made.kind != Kind::object || !made.global)
    broken("calls something with arguments by keyword");
  if (may_hold(keywords)) put_item(top(), "keywords", keywords);
}

void PickleMachine::step_inst() {
  const std::string_view module = take_line();
  push_global(module, take_line());
  const uint32_t function = pop();
  push(call(function, pop_to_mark()));
}

void PickleMachine::step_obj() {
  std::vector<uint32_t> items = pop_to_mark();
  if (items.empty()) broken("makes an object of nothing");
  const uint32_t function = items.front();
  items.erase(items.begin());
  push(call(function, items));
}

// BUILD: a state in a dict is attributes by their names. To torch a tensor's state is another
// storage and shape.
void PickleMachine::step_build() {
  const uint32_t state = pop(), index = top();
  PickleValue& target = pickle_.values[index];
  if (target.kind == Kind::tensor) broken("gives a tensor a state, which torch no longer writes");
  if ((target.kind != Kind::object && target.kind != Kind::dict) || !may_hold(state) ||
      state == index)  // addict's dicts are their own state
    return;
  if (pickle_[state].kind != Kind::dict) {
    if (target.kind == Kind::object && !target.global)
      broken("gives a TorchScript object a state without names, in which weights may lie");
    return put_item(index, "state", state);
  }
  charge(pickle_[state].items.size());
  const std::vector<uint32_t> items = pickle_[state].items;
  target.items.insert(target.items.end(), items.begin(), items.end());
}

// BINPERSID: ('storage', type, key, device, count) or, in the legacy layout, with a view as sixth
// item.
void PickleMachine::step_storage() {
  const uint32_t index = pop();
  if (pickle_[index].kind != Kind::sequence)
    broken("refers to a storage by something else than a tuple");
  charge(pickle_[index].items.size());
  const std::vector<uint32_t> items = pickle_[index].items;
  if (items.size() < 5 || !pickle_.is_text(items[0], "storage"))
    broken("refers to what is no storage");
  const PickleValue& type = pickle_[argument(items, 1, Kind::global)];
  if (type.global->role != GlobalRole::storage_type) broken("has a storage without element type");
  if (items.size() > 6 || (items.size() == 6 && pickle_[items[5]].kind != Kind::opaque))
    broken("uses views of storages, which torch has not written since 0.3");
  std::string_view key;
  if (pickle_[items[2]].kind == Kind::text) key = pickle_[items[2]].text;
  if (key.empty() || key.size() > 200) broken("has a storage without a proper key");
  const PickleStorage storage{key, type.global->type, type.global->size,
                              size_argument(argument(items, 4, Kind::integer))};
  // Every tensor names its storage anew; equal names are one storage.
  const auto known = storage_of_key_.find(key);
  PickleValue value{.kind = Kind::storage};
  if (known != storage_of_key_.end() && pickle_.storages[known->second] == storage) {
    value.integer = static_cast<int64_t>(known->second);
  } else {
    value.integer = static_cast<int64_t>(pickle_.storages.size());
    storage_of_key_[key] = pickle_.storages.size();
    pickle_.storages.push_back(storage);
  }
  push(add(std::move(value)));
}

uint32_t PickleMachine::argument(const std::vector<uint32_t>& arguments, size_t index,
                                 Kind kind) const {
  if (index >= arguments.size() || pickle_[arguments[index]].kind != kind)
    broken(fmt::format("has a wrong argument {} in a call", index + 1));
  return arguments[index];
}

size_t PickleMachine::size_argument(uint32_t index) const {
  const PickleValue& value = pickle_[index];
  if (value.kind != Kind::integer || value.integer < 0)
    broken("has a size that is no whole number from 0");
  return static_cast<size_t>(value.integer);
}

std::vector<size_t> PickleMachine::sizes_argument(uint32_t index) {
  const auto& items = pickle_[index].items;
  if (items.size() > kMostDimensions) broken("has a tensor of more than 64 dimensions");
  charge(items.size());
  std::vector<size_t> sizes;
  for (uint32_t item : items) sizes.push_back(size_argument(item));
  return sizes;
}

uint32_t PickleMachine::make_dict(const std::vector<uint32_t>& arguments) {
  PickleValue value{.kind = Kind::dict};
  if (arguments.size() > 1) broken("makes a dict of several arguments");
  if (!arguments.empty()) {  // a list of (key, value), as Python 2 wrote it
    for (uint32_t pair : pickle_[argument(arguments, 0, Kind::sequence)].items) {
      const auto& items = pickle_[pair].items;
      if (pickle_[pair].kind != Kind::sequence || items.size() != 2)
        broken("has a dict of other than pairs");
      value.items.insert(value.items.end(), items.begin(), items.end());
      if (value.items.size() > kPickleBudget) broken("grows beyond all measure");
    }
  }
  return add(std::move(value));
}

// Whatever such an object is made of is kept: a dict or pairs are its items, as those of dicts of
// classes of their own; its methods are not known.
uint32_t PickleMachine::make_object(const PickleGlobal& of_class,
                                    const std::vector<uint32_t>& arguments) {
  PickleValue value{.kind = Kind::object};
  value.global = &of_class;
  const uint32_t made = add(std::move(value));
  for (uint32_t argument : arguments) {
    if (!may_hold(argument)) continue;
    const auto& given = pickle_[argument];
    const bool pair = given.kind == Kind::sequence && given.items.size() == 2 &&
                      pickle_[given.items[0]].kind == Kind::text;
    if (given.kind != Kind::dict && !pair) {
      put_item(made, "", argument);
      continue;
    }
    charge(given.items.size());
    auto& items = pickle_.values[made].items;
    items.insert(items.end(), given.items.begin(), given.items.end());
  }
  return made;
}

// What torch writes of a lazy view: that its values are the stored ones with the other sign, or
// conjugated. That a key is there says so, whatever its value.
void PickleMachine::read_metadata(uint32_t index, PickleTensor& tensor) const {
  const PickleValue& metadata = pickle_[index];
  if (metadata.kind == Kind::opaque) return;  // None
  if (metadata.kind != Kind::dict) broken("has a tensor whose metadata is no dict");
  for (size_t i = 0; i < metadata.items.size(); i += 2) {
    if (pickle_.is_text(metadata.items[i], "neg"))
      tensor.negative = true;
    else if (!pickle_.is_text(metadata.items[i], "conj") || tensor.listed)
      broken(
          fmt::format("has a tensor with the metadata '{}', which changes its values in a way "
                      "that is not known",
                      printable(pickle_[metadata.items[i]].text)));
  }
}

uint32_t PickleMachine::make_tensor(const PickleGlobal& function,
                                    const std::vector<uint32_t>& arguments) {
  size_t most = 4;  // arguments
  if (function.role == GlobalRole::rebuild_tensor) most = 7;
  if (function.role == GlobalRole::rebuild_typed) most = 8;
  if (arguments.size() > most)
    broken(fmt::format("calls '{}' with {} arguments; at most {} are known", function.name,
                       arguments.size(), most));
  const PickleValue& storage = pickle_[argument(arguments, 0, Kind::storage)];
  const PickleStorage& stored = pickle_.storages[static_cast<size_t>(storage.integer)];
  PickleTensor tensor;
  tensor.storage = static_cast<size_t>(storage.integer);
  tensor.layout.offset = size_argument(argument(arguments, 1, Kind::integer));
  tensor.layout.shape = sizes_argument(argument(arguments, 2, Kind::sequence));
  tensor.layout.strides = sizes_argument(argument(arguments, 3, Kind::sequence));
  std::optional<DType> type = stored.type;
  if (function.role == GlobalRole::rebuild_typed) {
    const PickleValue& named = pickle_[argument(arguments, 6, Kind::global)];
    if (named.global->role != GlobalRole::element_type) broken("has a tensor without element type");
    type = named.global->type;
  }
  tensor.listed = type.has_value();
  tensor.layout.type = type.value_or(DType::u8);
  if (most > 4 && arguments.size() == most) read_metadata(arguments.back(), tensor);
  pickle_.tensors.push_back(std::move(tensor));
  PickleValue value{.kind = Kind::tensor};
  value.integer = static_cast<int64_t>(pickle_.tensors.size() - 1);
  return add(std::move(value));
}

uint32_t PickleMachine::call(uint32_t function, const std::vector<uint32_t>& arguments) {
  if (pickle_[function].kind != Kind::global) broken("calls what is no global");
  const PickleGlobal& global = *pickle_[function].global;
  switch (global.role) {
    case GlobalRole::ordered_dict:
      return make_dict(arguments);
    case GlobalRole::script_class:
      return add({.kind = Kind::object});
    case GlobalRole::rebuild_bare:
    case GlobalRole::rebuild_tensor:
    case GlobalRole::rebuild_typed:
      return make_tensor(global, arguments);
    case GlobalRole::pass_through:
      if (arguments.empty()) broken("calls something without arguments");
      return arguments[0];
    case GlobalRole::rebuild_subclass: {
      const PickleValue& inner = pickle_[argument(arguments, 0, Kind::global)];
      const uint32_t list = argument(arguments, 2, Kind::sequence);
      charge(pickle_[list].items.size());
      const auto items = pickle_[list].items;
      if (inner.global->role == GlobalRole::rebuild_subclass) broken("nests tensor classes");
      return call(arguments[0], items);
    }
    case GlobalRole::harmless:
      return make_object(global, arguments);
    case GlobalRole::storage_type:
    case GlobalRole::element_type:
      break;
  }
  broken(fmt::format("calls '{}', which is no function", global.name));
}

}  // namespace fungi
