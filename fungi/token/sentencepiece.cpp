// SPDX-License-Identifier: Apache-2.0
// SentencePiece's own files, read by its own library, with what T5 and XLM-RoBERTa put around them.
#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/token/tokenizer_parts.h"

#ifdef FUNGI_HAVE_SENTENCEPIECE

#include <sentencepiece_processor.h>

namespace fungi::token {
namespace {

constexpr int kSentinels = 100;  // <extra_id_0> to <extra_id_99> of T5

class SentencePiece final : public Model {
 public:
  SentencePiece(const FileBytes& file, int first_shift) : first_shift_(first_shift) {
    if (!processor_.LoadFromSerializedProto(file.text()).ok())
      fail("expected a model of SentencePiece, found something else or a part of one", file.path(),
           "fetch the file again");
  }
  void append_ids(std::string_view text, Scratch&, std::vector<int32_t>& ids) const override {
    std::vector<int> found;
    const auto status = processor_.Encode(text, &found);
    if (!status.ok()) fail(fmt::format("SentencePiece failed: {}", status.ToString()));
    for (const int id : found) ids.push_back(shifted(id));
  }
  int32_t id_of(std::string_view piece) const override {
    const int id = processor_.PieceToId(piece);
    return processor_.IdToPiece(id) == piece ? shifted(id) : -1;
  }
  size_t pieces() const override { return size_t(processor_.GetPieceSize()); }
  int32_t largest_id() const override { return processor_.GetPieceSize() - 1 + first_shift_; }
  const char* name() const override { return "SentencePiece"; }

 private:
  // XLM-RoBERTa has four special tokens of its own first: <s>, <pad>, </s>, <unk>.
  int32_t shifted(int id) const {
    if (first_shift_ > 0 && id == processor_.unk_id()) return 3;
    return id + first_shift_;
  }
  sentencepiece::SentencePieceProcessor processor_;
  int first_shift_;
};

void make_t5(Tokenizer::Parts& parts, const FileBytes& file) {
  if (parts.model->id_of("[CLS]") >= 0 || parts.model->id_of("<cls>") >= 0)
    fail("expected the pieces of T5, found those of ALBERT or XLNet", file.path(),
         "put tokenizer.json beside it, which says what these models do to texts");
  const int32_t end = parts.model->id_of("</s>");
  if (end < 0) fail("expected the piece '</s>', found none", file.path(), "fetch the file again");
  for (const char* word : {"<pad>", "</s>", "<unk>"})
    if (const int32_t id = parts.model->id_of(word); id >= 0) parts.add({word, id, true});
  const int32_t size = parts.model->largest_id() + 1;
  for (int i = 0; i < kSentinels; ++i) {
    const std::string word = fmt::format("<extra_id_{}>", i);
    const int32_t own = parts.model->id_of(word);
    parts.add({word, own >= 0 ? own : size + kSentinels - 1 - i, true});
  }
  parts.around.behind = {end};
}

void make_xlm_roberta(Tokenizer::Parts& parts) {
  parts.add({"<s>", 0, true});
  parts.add({"<pad>", 1, true});
  parts.add({"</s>", 2, true});
  parts.add({"<unk>", 3, true});
  parts.add({"<mask>", parts.model->largest_id() + 1, true, false, true});
  parts.around = {{0}, {2}};
}

}  // namespace

void read_sentencepiece(const FileBytes& file, Tokenizer::Parts& parts) {
  const bool xlm_roberta = parts.file == "sentencepiece.bpe.model";
  parts.model = std::make_unique<SentencePiece>(file, xlm_roberta ? 1 : 0);
  if (xlm_roberta)
    make_xlm_roberta(parts);
  else
    make_t5(parts, file);
}

}  // namespace fungi::token

#else

namespace fungi::token {

void read_sentencepiece(const FileBytes& file, Tokenizer::Parts&) {
  fail("this build has no SentencePiece", file.path(),
       "put tokenizer.json beside it, or install libsentencepiece-dev and build again");
}

}  // namespace fungi::token

#endif
