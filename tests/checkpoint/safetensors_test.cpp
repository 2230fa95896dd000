// SPDX-License-Identifier: Apache-2.0
// Every way in which a safetensors header can lie.
#include <nlohmann/json.hpp>

#include "fungi/checkpoint/checkpoint.h"
#include "support.h"

namespace fungi {
namespace {

std::string file(const std::string& header, size_t data_bytes) {
  return raw(uint64_t{header.size()}) + header + std::string(data_bytes, '\0');
}

std::string tensor(const std::string& name, const std::string& type, const std::string& shape,
                   const std::string& offsets) {
  return join("\"", name, "\":{\"dtype\":\"", type, "\",\"shape\":[", shape, "],\"data_offsets\":[",
              offsets, "]}");
}

TEST(Safetensors, AcceptsWhatIsSound) {
  EXPECT_EQ(read_all(file(std::string("{") + tensor("a", "F32", "2,1", "0,8") + "}   ", 8)), 1u);
  EXPECT_EQ(read_all(file("{\"__metadata__\":{\"a\":\"b\"}," + tensor("b", "BF16", "3", "8,14") +
                              "," + tensor("a", "F64", "", "0,8") + "}",
                          14)),
            2u);
  EXPECT_EQ(read_all(file(std::string("{") + tensor("a", "F32", "0,3", "0,0") + "}", 0)), 1u);
}

// The format's own library reads them, too.
TEST(Safetensors, BlanksMayStandBeforeTheHeader) {
  const std::string header = std::string("{") + tensor("a", "F32", "2", "0,8") + "}";
  for (const char* blanks : {" ", "        ", "\n\t\r "})
    EXPECT_EQ(read_all(file(blanks + header, 8)), 1u);
  EXPECT_CONTAINS(open_error(file("   ", 8)), "neither safetensors");
  EXPECT_CONTAINS(open_error(file(" [" + header + "]", 8)), "neither safetensors");
}

TEST(Safetensors, HeaderLength) {
  const std::string good = file(std::string("{") + tensor("a", "F32", "2", "0,8") + "}", 8);
  for (uint64_t length : {uint64_t{good.size()}, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 7,
                          uint64_t{100'000'001}})
    EXPECT_CONTAINS(open_error(raw(length) + good.substr(8)), "its header should be");
  EXPECT_CONTAINS(open_error(raw(uint64_t{0}) + good.substr(8)), "not a JSON object");
  EXPECT_CONTAINS(open_error(raw(uint64_t{10}) + good.substr(8)), "no valid JSON at byte");
}

TEST(Safetensors, Offsets) {
  const auto refusal = [](const std::string& tensors, size_t bytes) {
    return open_error(file("{" + tensors + "}", bytes));
  };
  EXPECT_CONTAINS(refusal(tensor("a", "F32", "2", "0,12"), 12),
                  "tensor 'a': shape 2 of F32 needs 8 bytes");
  EXPECT_CONTAINS(refusal(tensor("a", "F32", "2", "8,0"), 8), "lies at bytes 8 to 0");
  EXPECT_CONTAINS(refusal(tensor("a", "F32", "2", "0,8"), 4), "lies at bytes 0 to 8 of 4");
  EXPECT_CONTAINS(refusal(tensor("a", "F32", "2", "18446744073709551612,4"), 8), "lies at bytes");
  EXPECT_CONTAINS(refusal(tensor("a", "F32", "2", "0,8"), 9), "end at byte 8 of 9");
  EXPECT_CONTAINS(refusal(tensor("a", "F32", "2", "1,9"), 9), "begins at byte 1");
  const std::string first = tensor("a", "F32", "2", "0,8") + ",";
  EXPECT_CONTAINS(refusal(first + tensor("b", "F32", "2", "4,12"), 12),
                  "tensor 'b': begins at byte 4");
  EXPECT_CONTAINS(refusal(first + tensor("b", "F32", "2", "0,8"), 8), "begins at byte 0");
  EXPECT_CONTAINS(refusal(first + tensor("b", "F32", "2", "12,20"), 20), "begins at byte 12");
  EXPECT_CONTAINS(refusal(tensor("a", "F32", "2", "0,8,8"), 8),
                  "needs dtype, shape and two data_offsets");
}

TEST(Safetensors, Shapes) {
  const auto refusal = [](const std::string& shape) {
    return open_error(file(std::string("{") + tensor("a", "F32", shape, "0,8") + "}", 8));
  };
  EXPECT_CONTAINS(refusal("4294967296,4294967296"), "more elements than memory");
  EXPECT_CONTAINS(refusal("9223372036854775809,2"), "more elements than memory");
  EXPECT_CONTAINS(refusal("0,9223372036854775809,9223372036854775809"),
                  "more elements than memory");
  EXPECT_CONTAINS(refusal("-2"), "negative number");
  EXPECT_CONTAINS(refusal("2.0"), "not a whole one");
  EXPECT_CONTAINS(refusal("18446744073709551616"), "not a whole one");
  EXPECT_CONTAINS(refusal("\"2\""), "a text where none belongs");
  EXPECT_CONTAINS(refusal("[2]"), "an array where none belongs");
  EXPECT_CONTAINS(refusal("{}"), "an object inside an array");
  std::string many = "1";
  for (int i = 0; i < 70; ++i) many += ",1";
  EXPECT_CONTAINS(refusal(many), "more than 64 dimensions");
}

TEST(Safetensors, Structure) {
  const auto refusal = [](const std::string& header) { return open_error(file(header, 8)); };
  const std::string good = tensor("a", "F32", "2", "0,8");
  EXPECT_CONTAINS(refusal("{" + good + "," + good + "}"), "the name 'a' twice");
  EXPECT_CONTAINS(refusal(std::string("{") + tensor("a", "F8_E4M3", "8", "0,8") + "}"),
                  "element type 'F8_E4M3'");
  EXPECT_CONTAINS(refusal(std::string("{") + tensor("a", "f32", "2", "0,8") + "}"),
                  "element type 'f32'");
  EXPECT_CONTAINS(refusal("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}"), "needs dtype");
  EXPECT_CONTAINS(refusal("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}"), "field 'dtype' twice");
  EXPECT_CONTAINS(refusal("{\"a\":{\"strides\":[2]}}"), "unknown field 'strides'");
  EXPECT_CONTAINS(refusal("{\"a\":{\"x\":{\"y\":1}}}"), "nested too deep");
  EXPECT_CONTAINS(refusal("{\"a\":null}"), "a null");
  EXPECT_CONTAINS(refusal("{" + good + ",\"b\":{\"shape\":null}}"), "a null, at tensor 'b'");
  EXPECT_CONTAINS(refusal("{\"__metadata__\":{\"a\":{}}}"), "nested too deep");
  EXPECT_CONTAINS(refusal("{\"\xff\":{}}"), "no valid JSON");
  EXPECT_CONTAINS(refusal("{" + good + "} {"), "no valid JSON");
  EXPECT_CONTAINS(refusal("{\"a\\nb\\u001b\":{}}"), "tensor 'a?b?'");
}

// A header of nothing but brackets must neither recurse nor fill memory.
TEST(Safetensors, DeepNesting) {
  EXPECT_CONTAINS(open_error(file("{\"a\":" + std::string(5'000'000, '['), 8)),
                  "array where none belongs");
}

using Shards = FolderTest;

TEST_F(Shards, TheIndexMustBeSound) {
  const auto refusal = [&](const std::string& index) {
    const auto path = folder_.write("model.safetensors.index.json", index);
    return error_of([&] { Checkpoint::open(path); });
  };
  folder_.write("a.safetensors", file(std::string("{") + tensor("w", "F32", "2", "0,8") + "}", 8));
  EXPECT_CONTAINS(refusal("{"), "not valid JSON");
  EXPECT_CONTAINS(refusal("{\"weight_map\":[]}"), "no object 'weight_map'");
  EXPECT_CONTAINS(refusal("{\"weight_map\":{\"w\":5}}"), "tensor 'w': should lie in a file beside");
  for (const char* name : {"../a.safetensors", "/etc/passwd", "..", "b\\\\c", "", "a\\u0000b"})
    EXPECT_CONTAINS(refusal(std::string("{\"weight_map\":{\"w\":\"") + name + "\"}}"),
                    "beside the index");
  EXPECT_CONTAINS(refusal("{\"weight_map\":{\"v\":\"a.safetensors\"}}"),
                  "tensor 'v': is not there");
  EXPECT_CONTAINS(refusal("{\"weight_map\":{\"w\":\"b.safetensors\"}}"),
                  "b.safetensors: cannot be opened");
  EXPECT_CONTAINS(refusal("{\"weight_map\":{\"w\":\"model.safetensors.index.json\"}}"),
                  "itself an index");
  EXPECT_CONTAINS(refusal("{\"weight_map\":{}}"), "holds no tensor");
  EXPECT_CONTAINS(refusal(std::string(300'000, '[')), "neither safetensors");
  EXPECT_CONTAINS(refusal("{\"a\":" + std::string(300'000, '[')), "not valid JSON");
}

TEST_F(Shards, TheIndexDecidesWhatIsThere) {
  folder_.write("a.safetensors", file(std::string("{") + tensor("v", "F32", "1", "0,4") + "," +
                                          tensor("w", "F32", "1", "4,8") + "}",
                                      8));
  folder_.write("model.safetensors.index.json", "{\"weight_map\":{\"w\":\"a.safetensors\"}}");
  folder_.write("training_args.bin", "left by the trainer");
  const Checkpoint checkpoint = Checkpoint::open(folder_.path());
  ASSERT_EQ(checkpoint.tensors().size(), 1u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "w");
  folder_.write("other.safetensors", "x");
  EXPECT_CONTAINS(error_of([&] { Checkpoint::open(folder_.path()); }),
                  "2 checkpoints: model.safetensors.index.json, other.safetensors");
}

}  // namespace
}  // namespace fungi
