// SPDX-License-Identifier: Apache-2.0
// A model at hand: the name of a file or folder, or named arrays in memory with what would lie
// beside them.
#include "python/models.h"

#include <fmt/format.h>

#include "python/watch.h"

namespace fungi::python {
namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

DType parse_type(const std::string& name) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i64, DType::i32,
                           DType::i16, DType::i8, DType::u8, DType::boolean})
    if (name == to_string(type)) return type;
  raise("InputError", fmt::format("a tensor has the element type '{}'", name), "model",
        "give float32, float16, bfloat16 or float64");
}

}  // namespace

MemoryModel::MemoryModel(std::string name, nb::list tensors, nb::dict beside)
    : name_(std::move(name)), kept_(tensors) {
  for (nb::handle tensor : tensors) {  // (name, type, shape, bytes)
    const auto bytes =
        nb::cast<Bytes>(tensor[3], false);  // a converted copy would be gone too early
    tensors_.push_back({{from_str(tensor[0]), parse_type(nb::cast<std::string>(tensor[1])),
                         nb::cast<std::vector<size_t>>(tensor[2])},
                        std::as_bytes(std::span(bytes.data(), bytes.size()))});
  }
  for (const auto& [file, text] : beside) beside_[from_str(file)] = from_str(text);
}

Checkpoint MemoryModel::checkpoint() const {
  return Checkpoint::of_memory(name_, tensors_, beside_);
}

Checkpoint checkpoint_of(const Model& model) {
  if (const auto* path = std::get_if<std::filesystem::path>(&model)) return Checkpoint::open(*path);
  return std::get<MemoryModel*>(model)->checkpoint();
}

Backbone open_backbone(const Model& model, const BackboneOptions& options, Pool& pool) {
  if (const auto* path = std::get_if<std::filesystem::path>(&model))
    return Backbone::open(*path, options, pool);
  return Backbone::open(std::get<MemoryModel*>(model)->checkpoint(), options, pool);
}

Model model_of(nb::handle given) {
  if (nb::isinstance<MemoryModel>(given)) return nb::cast<MemoryModel*>(given);
  return nb::cast<std::filesystem::path>(given);
}

namespace {

nb::dict inspect(nb::handle given, const StatedFacts& facts) {
  const Model model = model_of(given);
  const Checkpoint checkpoint = checkpoint_of(model);
  nb::dict out;
  out["path"] = to_str(checkpoint.path());
  out["format"] = checkpoint.format();
  nb::list tensors;
  for (const TensorInfo& t : checkpoint.tensors())
    tensors.append(nb::make_tuple(to_str(t.name), to_string(t.type), t.shape));
  out["tensors"] = tensors;
  const Architecture a = read_architecture(checkpoint, facts);
  nb::dict said;
  for (const auto& [name, value] : describe(a)) said[name.c_str()] = to_str(worded(value));
  if (a.family.ends_with("clip") && !a.head)
    said["projection"] = "none found: embeddings are those of the tower, before any projection";
  out["architecture"] = said;
  out["default_layer"] = fmt::format("blocks.{}.attn.proj", a.depth - 1);
  out["notes"] = worded_list(read_notes(checkpoint, facts));
  return out;
}

nb::list tensors_of(nb::handle given) {
  nb::list list;
  const Checkpoint checkpoint = checkpoint_of(model_of(given));
  for (const TensorInfo& t : checkpoint.tensors())
    list.append(nb::make_tuple(to_str(t.name), to_string(t.type), t.shape));
  return list;
}

nb::dict read_arrays(const std::filesystem::path& file) {
  const Checkpoint archive = Checkpoint::open(file);
  nb::dict arrays;
  for (const TensorInfo& t : archive.tensors())
    arrays[to_str(t.name)] = to_numpy(archive.read(t.name));
  return arrays;
}

nb::list model_families() {
  nb::list list;
  for (const FamilyFacts& f : families()) {
    nb::dict d;
    d["family"] = f.name;
    d["dialects"] = f.dialects;
    d["examples"] = f.examples;
    d["notes"] = to_str(worded(f.notes));
    list.append(d);
  }
  return list;
}

}  // namespace

void add_models(nb::module_& m) {
  nb::class_<MemoryModel>(m, "MemoryModel")
      .def(nb::init<std::string, nb::list, nb::dict>(), nb::arg("name"), nb::arg("tensors"),
           nb::arg("beside"));
  m.def("inspect", inspect, nb::arg("model"), nb::arg("facts"));
  m.def("tensors", tensors_of, nb::arg("model"));
  m.def("read_arrays", read_arrays, nb::arg("file"));
  m.def("models", model_families);
  m.def("pulled_model", [](nb::handle model) { return to_str(pulled_model(from_str(model))); });
}

}  // namespace fungi::python
