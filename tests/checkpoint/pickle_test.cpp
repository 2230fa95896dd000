// SPDX-License-Identifier: Apache-2.0
// The unpickler: every opcode, the refusal of all that could run, bombs, and tensors that reach out
// of their storage.
#include "fungi/checkpoint/pickle.h"

#include "archive.h"
#include "support.h"

namespace fungi {
namespace {

using Kind = PickleValue::Kind;

std::string pickle_error(const std::string& bytes) {
  return error_of([&] { unpickle(bytes, "memory"); });
}

TEST(Pickle, KnowsEveryOpcodeOfAStateDict) {
  const std::string bytes =
      "\x80\x05\x95" + raw(uint64_t{1}) +
      "](I5\nI01\nL7L\nL123456789012345678901234567890L\nF1.5\nG" + raw(1.0) + "K\x05M\x05\x01" +
      "J" + raw(int32_t{-3}) + "\x8a\x01\xfe" + "\x8b" + raw(uint32_t{2}) + "\x01\x02N\x88\x89" +
      "S'a b'\nVtext\nT" + raw(uint32_t{1}) +
      "cU\x01"
      "dX" +
      raw(uint32_t{1}) +
      "e\x8c\x01"
      "f\x8d" +
      raw(uint64_t{1}) + "gB" + raw(uint32_t{1}) + "hC\x01i\x8e" + raw(uint64_t{1}) + "j\x96" +
      raw(uint64_t{1}) + "k" +
      ")}(K\x01l(K\x01K\x02"
      "d\x8f(K\x01\x90(K\x01\x91K\x01\x85K\x01K\x02\x86K\x01K\x02K\x03\x87(K\x01t" +
      "K\x09p0\ng0\nq\x01h\x01r" + raw(uint32_t{300}) + "j" + raw(uint32_t{300}) + "\x94" +
      "2(K\x01K\x02"
      "1K\x01"
      "0e.";
  const std::string more = bytes + "rest";
  const Pickle pickle = unpickle(more, "memory");
  EXPECT_EQ(pickle.length, bytes.size());
  const PickleValue& root = pickle[pickle.root];
  ASSERT_EQ(root.kind, Kind::sequence);
  std::string texts;
  std::vector<int64_t> integers;
  size_t sequences = 0, dicts = 0, opaque = 0;
  for (uint32_t item : root.items) {
    if (pickle[item].kind == Kind::text) texts += pickle[item].text;
    if (pickle[item].kind == Kind::integer) integers.push_back(pickle[item].integer);
    sequences += pickle[item].kind == Kind::sequence;
    dicts += pickle[item].kind == Kind::dict;
    opaque += pickle[item].kind == Kind::opaque;
  }
  EXPECT_EQ(texts, "123456789012345678901234567890a btextcdefghijk");
  EXPECT_EQ(integers, (std::vector<int64_t>{5, 1, 7, 5, 261, -3, -2, 513, 9, 9, 9, 9, 9}));
  EXPECT_EQ(sequences, 8u);  // ) (l, set, frozenset, \x85 \x86 \x87 (t
  EXPECT_EQ(dicts, 2u);
  EXPECT_EQ(opaque, 5u);  // F G N True False
}

TEST(Pickle, RefusesWhateverCouldRun) {
  for (const char* name :
       {"os\nsystem", "posix\nsystem", "builtins\neval", "__builtin__\neval", "builtins\ngetattr",
        "builtins\nexec", "subprocess\nPopen", "torch.storage\n_load_from_bytes", "torch\nload",
        "functools\npartial", "operator\nattrgetter", "torch.hub\nload", "runpy\n_run_code",
        "numpy.testing._private.utils\nrunstring", "__torch\nx", "collections\nOrderedDict.x"}) {
    std::string dotted(name);
    const size_t split = dotted.find('\n');
    const std::string module = dotted.substr(0, split), function = dotted.substr(split + 1);
    dotted[split] = '.';
    const std::string refusal = "refuses the global '" + dotted + "'";
    EXPECT_CONTAINS(
        pickle_error(join("\x80\x02", "c", module, "\n", function, "\n", text("ls"), "\x85R.")),
        refusal);
    EXPECT_CONTAINS(pickle_error(join("(", text("ls"), "i", module, "\n", function, "\n.")),
                    refusal);
    EXPECT_CONTAINS(pickle_error("\x80\x04" + text(module) + text(function) + "\x93."), refusal);
  }
  EXPECT_CONTAINS(open_error(pth(dict("cos\nsystem\n" + text("ls") + "\x85R"))),
                  "memory: refuses the global 'os.system'");
  EXPECT_CONTAINS(open_error(legacy("cos\nsystem\n" + text("ls") + "\x85R.")),
                  "refuses the global 'os.system'");
}

// Their classes are not known, but no tensor that lies in one may be lost.
TEST(Pickle, KeepsWhatLiesInHarmlessObjects) {
  const std::string state = "}" + text("lr") + "G" + raw(0.1) + "sb";
  for (const std::string& object : {
           "cargparse\nNamespace\n)\x81" + state,
           "cargparse\nNamespace\n)R" + state,
           "(iargparse\nNamespace\n" + state,
           "(cargparse\nNamespace\no" + state,
           "cargparse\nNamespace\n)}\x92" + state,
           "ccopy_reg\n_reconstructor\n(cargparse\nNamespace\nc__builtin__\nobject\nNtR" + state,
           "cyacs.config\nCfgNode\n)\x81(" + text("a") + "K\x01u" + state,
           "cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(" + text("f8") + integer(0) +
               integer(1) + "tR(K\x03" + text("<") + "NNN" + integer(-1) + integer(-1) +
               integer(0) + "tbU\x08" + raw(1.0) + "tR",
           std::string("ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(K\x01]u"),
       }) {
    const Pickle pickle = unpickle("\x80\x02" + object + ".", "memory");
    EXPECT_EQ(pickle[pickle.root].kind, Kind::object) << object;
    EXPECT_NE(pickle[pickle.root].global, nullptr) << object;
  }
  const std::string value = tensor_pickle(storage("0", 2), 0, {2}, {1});
  for (const std::string& object : {
           "cargparse\nNamespace\n)\x81}" + text("w") + value + "sb",
           "cargparse\nNamespace\n)}" + text("w") + value + "s\x92",             // by keyword
           "cargparse\nNamespace\n)\x81N}" + text("w") + value + "s\x86" + "b",  // in its slots
           "cargparse\nNamespace\n)\x81" + value + "\x85" + "b",
           "ccopy_reg\n_reconstructor\n(cmunch\nMunch\nc__builtin__\ndict\n}" + text("w") + value +
               "stR",
           "ccollections\ndeque\n)R" + value + "a",
           "(" + value + "\x91",
           "\x8f(" + value + "\x90",
       })
    EXPECT_EQ(read_all(legacy("\x80\x02" + object + ".", {"0"},
                              raw(uint64_t{2}) + raw(1.0f) + raw(2.0f))),
              1u)
        << object;
  // Two objects that hold each other.
  EXPECT_EQ(read_all(legacy("\x80\x02"
                            "cargparse\nNamespace\n)\x81q\x01}(" +
                                text("it") + "cargparse\nNamespace\n)\x81}" + text("back") +
                                "h\x01sb" + text("w") + value + "ub.",
                            {"0"}, raw(uint64_t{2}) + raw(1.0f) + raw(2.0f))),
            1u);
}

TEST(Pickle, ReadsOrderedDictOfPairs) {
  const std::string value = tensor_pickle(storage("0", 2), 0, {2}, {1});
  const std::string object =
      "\x80\x02"
      "ccollections\nOrderedDict\n](](" +
      text("w") + value + "ee\x85R.";
  EXPECT_EQ(read_all(legacy(object, {"0"}, raw(uint64_t{2}) + raw(1.0f) + raw(2.0f))), 1u);
}

TEST(Pickle, ScriptObjectsAreDicts) {
  const std::string value = tensor_pickle(storage("0", 2), 0, {2}, {1});
  const std::string inner = "c__torch__.torch.nn.Linear\nLinear\n)\x81}(" + text("weight") + value +
                            text("training") + "\x89ub";
  const std::string object =
      "\x80\x02"
      "c__torch__\nNet\n)\x81}" +
      text("fc") + inner + "sb.";
  const std::string bytes = pth(object, {stored("archive/data/0", raw(1.0f) + raw(2.0f))});
  const auto source = open_source(FileBytes::borrow("memory", std::as_bytes(std::span(bytes))));
  ASSERT_EQ(source->tensors.size(), 1u);
  EXPECT_EQ(source->tensors[0].name, "fc.weight");
}

TEST(Pickle, MalformedStreams) {
  EXPECT_CONTAINS(pickle_error(""), "ends too early");
  EXPECT_CONTAINS(pickle_error("."), "empty stack");
  EXPECT_CONTAINS(pickle_error("0."), "empty stack");
  EXPECT_CONTAINS(pickle_error("K\x01(0."), "empty stack");
  EXPECT_CONTAINS(pickle_error("t."), "misses a mark");
  EXPECT_CONTAINS(pickle_error("h\x05."), "memo 5, which was never set");
  EXPECT_CONTAINS(pickle_error("gx\n."), "malformed memo");
  EXPECT_CONTAINS(pickle_error("(K\x01"
                               "d."),
                  "key without value");
  EXPECT_CONTAINS(pickle_error("}(K\x01u."), "key without value");
  EXPECT_CONTAINS(pickle_error("K\x01K\x02"
                               "a."),
                  "adds items to what holds none");
  EXPECT_CONTAINS(pickle_error("K\x01)R."), "calls what is no global");
  EXPECT_CONTAINS(pickle_error("ctorch\nFloatStorage\n)R."), "which is no function");
  EXPECT_CONTAINS(pickle_error("ctorch._utils\n_rebuild_parameter\n)R."), "without arguments");
  EXPECT_CONTAINS(pickle_error("ctorch._utils\n_rebuild_tensor_v2\n)R."), "wrong argument 1");
  EXPECT_CONTAINS(pickle_error("Iabc\n."), "malformed number");
  EXPECT_CONTAINS(pickle_error("Sabc\n."), "without quotes");
  EXPECT_CONTAINS(pickle_error("S'"), "inside a line");
  EXPECT_CONTAINS(pickle_error("P123\n."), "protocol 0");
  EXPECT_CONTAINS(pickle_error("\x82\x01."), "opcode 0x82");
  EXPECT_CONTAINS(pickle_error("\x97."), "opcode 0x97");
  EXPECT_CONTAINS(pickle_error("\xff."), "opcode 0xff");
  EXPECT_CONTAINS(pickle_error("\x80\x06."), "unknown protocol");
  EXPECT_CONTAINS(pickle_error("\x95" + raw(uint64_t{100}) + "."), "inside a frame");
  EXPECT_CONTAINS(pickle_error("X\xff\xff\xff\xff"
                               "a"),
                  "ends too early");
  EXPECT_CONTAINS(pickle_error("\x8d" + raw(~uint64_t{0}) + "a"), "ends too early");
  EXPECT_CONTAINS(pickle_error("\x8b\xff\xff\xff\xff"
                               "a"),
                  "ends too early");
  EXPECT_CONTAINS(pickle_error("NQ."), "something else than a tuple");
  EXPECT_CONTAINS(pickle_error(")Q."), "no storage");
  EXPECT_CONTAINS(pickle_error("K\x01K\x02\x93."), "something else than text");
}

TEST(Pickle, BombsEndInAnError) {
  // Nesting: no recursion in the machine; a limit when names are made.
  const std::string deep = std::string(200'000, ']') + std::string(199'999, 'a') + ".";
  EXPECT_EQ(unpickle(deep, "memory").length, deep.size());
  EXPECT_CONTAINS(open_error(legacy(dict(std::string(200'000, ']') + std::string(199'999, 'a')))),
                  "beyond measure");
  // A list of two references to a list of two references ... : 2^60 paths.
  std::string laughs = "]q" + raw(uint8_t{0});
  for (uint8_t i = 0; i < 60; ++i)
    laughs += "0](h" + raw(i) + "h" + raw(i) + "eq" + raw(static_cast<uint8_t>(i + 1));
  EXPECT_CONTAINS(open_error(legacy(dict(laughs))), "beyond measure");
  // Containers that hold themselves.
  EXPECT_CONTAINS(open_error(legacy("]q\x01h\x01"
                                    "a.")),
                  "beyond measure");
  EXPECT_CONTAINS(open_error(legacy("}q\x01" + text("a") + "h\x01s.")), "beyond measure");
  // The same state added to an object again and again.
  std::string grow =
      "\x80\x02"
      "c__torch__\nA\n)\x81}(";
  for (int i = 0; i < 1000; ++i) grow += "K\x01K\x02";
  grow +=
      "uq\x01"
      "b";
  for (int i = 0; i < 10'000; ++i)
    grow +=
        "h\x01"
        "b";
  EXPECT_CONTAINS(pickle_error(grow + "."), "grows beyond all measure");
  // One long tuple that is the arguments of very many calls.
  std::string calls = "\x80\x02(";
  for (int i = 0; i < 1000; ++i) calls += "K\x01";
  calls +=
      "tq\x01"
      "c__torch__\nA\nq\x02";
  for (int i = 0; i < 10'000; ++i) calls += "h\x02h\x01R0";
  EXPECT_CONTAINS(pickle_error(calls + "."), "grows beyond all measure");
  // One large key for very many names.
  std::string names =
      "}" + text(std::string(5000, 'k')) + tensor_pickle(storage("0", 1), 0, {1}, {1}) + "s";
  EXPECT_CONTAINS(open_error(legacy("\x80\x02" + names + ".", {"0"}, raw(uint64_t{1}) + raw(1.0f))),
                  "beyond measure");
  EXPECT_CONTAINS(pickle_error(std::string(10'000'000, 'N')), "grows beyond all measure");
  EXPECT_CONTAINS(pickle_error("N" + std::string(10'000'000, '2')), "too many values");
  EXPECT_CONTAINS(pickle_error(std::string(10'000'000, '(')), "grows beyond all measure");
}

TEST(Pickle, TensorsStayInTheirStorage) {
  const std::string four = raw(1.0f) + raw(2.0f) + raw(3.0f) + raw(4.0f);
  const auto file = [&](int32_t offset, const std::vector<int32_t>& shape,
                        const std::vector<int32_t>& strides) {
    return pth(dict(tensor_pickle(storage("0", 4), offset, shape, strides)),
               {stored("archive/data/0", four)});
  };
  EXPECT_EQ(read_all(file(0, {2, 2}, {2, 1})), 1u);
  EXPECT_EQ(read_all(file(3, {1}, {1})), 1u);
  EXPECT_EQ(read_all(file(0, {4, 9}, {1, 0})), 1u);
  EXPECT_EQ(read_all(file(9, {0}, {1})), 1u);
  const auto refusal = [&](int32_t offset, const std::vector<int32_t>& shape,
                           const std::vector<int32_t>& strides) {
    return open_error(file(offset, shape, strides));
  };
  EXPECT_CONTAINS(refusal(1, {2, 2}, {2, 1}),
                  "tensor 'w': shape 2x2 at offset 1 reaches beyond the 4 elements");
  EXPECT_CONTAINS(refusal(4, {1}, {1}), "reaches beyond");
  EXPECT_CONTAINS(refusal(0, {2, 3}, {2, 1}), "reaches beyond");
  EXPECT_CONTAINS(refusal(0, {2147483647, 2}, {2147483647, 2147483647}), "reaches beyond");
  EXPECT_CONTAINS(refusal(0, {3, 3, 3}, {2147483647, 2147483647, 2147483647}), "reaches beyond");
  EXPECT_CONTAINS(refusal(0, {2147483647, 2147483647, 2147483647}, {0, 0, 0}),
                  "more elements than memory");
  EXPECT_CONTAINS(refusal(0, {100000, 100000}, {0, 0}), "too often");
  EXPECT_CONTAINS(refusal(-1, {1}, {1}), "no whole number");
  EXPECT_CONTAINS(refusal(0, {-1}, {1}), "no whole number");
  EXPECT_CONTAINS(refusal(0, {2}, {-1}), "no whole number");
  EXPECT_CONTAINS(refusal(0, {2}, {}), "1 dimensions but 0 strides");
  EXPECT_CONTAINS(refusal(0, std::vector<int32_t>(65, 1), std::vector<int32_t>(65, 1)),
                  "64 dimensions");
}

// What torch.save writes of torch.tensor([1 + 2j]).conj().imag, say.
TEST(Pickle, TheNegativeBitTurnsTheSign) {
  const std::string two = raw(1.0f) + raw(-2.0f);
  const auto values = [&](const std::string& object, bool zipped) {
    const std::string bytes = zipped ? pth(object, {stored("archive/data/0", two)})
                                     : legacy(object, {"0"}, raw(uint64_t{2}) + two);
    const auto source = open_source(FileBytes::borrow("memory", std::as_bytes(std::span(bytes))));
    std::vector<float> read(source->tensors.at(0).count());
    source->read(0, read.data());
    return read;
  };
  const std::string typed =
      join("ctorch._utils\n_rebuild_tensor_v3\n(", storage("0", 2), integer(0), numbers({2}),
           numbers({1}), "\x89}ctorch\nfloat32\n}", text("neg"), "\x88stR");
  for (bool zipped : {true, false}) {
    const auto with = [&](const std::string& metadata) {
      return values(dict(tensor_pickle(storage("0", 2), 0, {2}, {1}, metadata)), zipped);
    };
    EXPECT_EQ(with(""), (std::vector<float>{1, -2}));
    EXPECT_EQ(with("N"), (std::vector<float>{1, -2}));
    EXPECT_EQ(with("}"), (std::vector<float>{1, -2}));
    EXPECT_EQ(with("}" + text("neg") + "\x88s"), (std::vector<float>{-1, 2}));
    EXPECT_EQ(values(dict(typed), zipped), (std::vector<float>{-1, 2}));
    const std::string one =
        tensor_pickle(storage("0", 2), 1, {1}, {2}, "}" + text("neg") + "\x88s");
    EXPECT_EQ(values(dict(one), zipped), (std::vector<float>{2}));
  }
}

TEST(Pickle, WhatIsNotKnownOfATensorIsRefused) {
  const auto refusal = [&](const std::string& metadata) {
    return open_error(legacy(dict(tensor_pickle(storage("0", 2), 0, {2}, {1}, metadata)), {"0"},
                             raw(uint64_t{2}) + raw(1.0f) + raw(2.0f)));
  };
  EXPECT_CONTAINS(refusal("}" + text("conj") + "\x88s"), "the metadata 'conj'");
  EXPECT_CONTAINS(refusal("}" + text("zero") + "\x88s"), "the metadata 'zero'");
  EXPECT_CONTAINS(refusal("K\x01"), "metadata is no dict");
  EXPECT_CONTAINS(refusal("NN"), "with 8 arguments; at most 7 are known");
  // An old tensor's state would be another storage, shape and strides.
  const std::string value = tensor_pickle(storage("0", 2), 0, {2}, {1});
  EXPECT_CONTAINS(pickle_error(join("\x80\x02", value, "(", storage("0", 2), integer(1),
                                    numbers({1}), numbers({1}), "tb.")),
                  "gives a tensor a state");
  // What a TorchScript class of its own puts into a tuple would be lost.
  EXPECT_CONTAINS(pickle_error(join("\x80\x02", "c__torch__\nPacked\n)\x81", value,
                                    "\x85"
                                    "b.")),
                  "a state without names");
  // So would arguments by keyword.
  EXPECT_CONTAINS(
      pickle_error(join("\x80\x02", "ccollections\nOrderedDict\n)}", text("w"), value, "s\x92.")),
      "by keyword");
  EXPECT_CONTAINS(pickle_error("\x80\x02"
                               "ccollections\nOrderedDict\n]]\x86R."),
                  "a dict of several arguments");
}

TEST(Pickle, TensorsOfAnotherMakeAreNamed) {
  const auto refusal = [](const char* global) {
    return pickle_error(join("\x80\x02", "c", global, "\n)R."));
  };
  EXPECT_CONTAINS(refusal("torch._utils\n_rebuild_qtensor"), "holds quantised tensors");
  EXPECT_CONTAINS(refusal("torch\nQInt8Storage"), "holds quantised tensors");
  EXPECT_CONTAINS(refusal("torch._utils\n_rebuild_meta_tensor_no_storage"), "without values");
  EXPECT_CONTAINS(refusal("torch._utils\n_rebuild_nested_tensor"), "holds nested tensors");
  EXPECT_CONTAINS(refusal("torch\nfloat4_e2m1fn_x2"), "4-bit floats");
  std::string complex = storage("0", 1);
  complex.replace(complex.find("FloatStorage"), 5, "ComplexFloat");
  const auto path = test::TemporaryFolder();
  const auto file =
      path.write("complex.pth", legacy(dict(tensor_pickle(complex, 0, {1}, {1})), {"0"},
                                       raw(uint64_t{1}) + raw(1.0f) + raw(2.0f)));
  EXPECT_CONTAINS(error_of([&] { Checkpoint::open(file); }),
                  "no tensor that can be read: the 1 in it are complex numbers");
}

TEST(Pickle, StoragesMustBeThere) {
  const std::string object = dict(tensor_pickle(storage("0", 2), 0, {2}, {1}));
  const std::string two = raw(1.0f) + raw(2.0f);
  EXPECT_EQ(read_all(pth(object, {stored("archive/data/0", two)})), 1u);
  EXPECT_CONTAINS(open_error(pth(object)), "storage 'archive/data/0' is missing");
  EXPECT_CONTAINS(open_error(pth(object, {stored("data/0", two)})), "is missing");
  EXPECT_CONTAINS(open_error(pth(object, {stored("archive/data/0", two + two)})),
                  "holds 16 bytes, but 2 elements");
  EXPECT_CONTAINS(open_error(pth(object, {stored("archive/data/0", "")})), "holds 0 bytes");
  EXPECT_CONTAINS(
      open_error(pth(object, {stored("archive/data/0", two), stored("archive/byteorder", "big")})),
      "big-endian");
  EXPECT_CONTAINS(open_error(pth(dict(tensor_pickle(storage("", 2), 0, {2}, {1})))),
                  "without a proper key");
  EXPECT_CONTAINS(
      open_error(pth(dict(tensor_pickle(storage("../../../etc/passwd", 2), 0, {2}, {1})))),
      "is missing");

  EXPECT_EQ(read_all(legacy(object, {"0"}, raw(uint64_t{2}) + two)), 1u);
  EXPECT_CONTAINS(open_error(legacy(object, {}, raw(uint64_t{2}) + two)),
                  "does not list the storage '0'");
  EXPECT_CONTAINS(open_error(legacy(object, {"1"}, raw(uint64_t{2}) + two)),
                  "lists the storage '1'");
  EXPECT_CONTAINS(open_error(legacy(object, {"0", "0"}, raw(uint64_t{2}) + two)), "listed twice");
  EXPECT_CONTAINS(open_error(legacy(object, {"0"}, raw(uint64_t{3}) + two)), "2 were expected");
  EXPECT_CONTAINS(open_error(legacy(object, {"0"}, raw(uint64_t{2}) + raw(1.0f))),
                  "before the file's end");
  EXPECT_CONTAINS(open_error(legacy(object, {"0"}, "abc")), "the file ends before it");
  const std::string viewed = "(" + text("storage") + "ctorch\nFloatStorage\n" + text("0") +
                             text("cpu") + integer(2) + "(" + text("1") + integer(0) + integer(2) +
                             "ttQ";
  EXPECT_CONTAINS(open_error(legacy(dict(tensor_pickle(viewed, 0, {2}, {1})), {"0"})),
                  "views of storages");
  EXPECT_CONTAINS(open_error("\x80\x02K\x05."), "not one that torch.save wrote");
}

}  // namespace
}  // namespace fungi
