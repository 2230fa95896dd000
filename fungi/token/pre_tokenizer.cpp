// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/pre_tokenizer.h"

#include "fungi/base/error.h"
#include "fungi/token/pattern.h"
#include "fungi/token/unicode.h"

namespace fungi::token {
namespace {

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(PartFields& part) {
    const nlohmann::json& list = part.value("pretokenizers");
    if (!list.is_array()) part.refuse("pretokenizers", "a list");
    for (const nlohmann::json& each : list)
      if (auto made = read_pre_tokenizer(each, part.place())) all_.push_back(std::move(made));
  }
  void apply(Pieces& pieces) const override {
    for (const auto& each : all_) {
      each->apply(pieces);
      require_length(pieces.text.size(), pieces.most);
    }
  }

 private:
  std::vector<PreTokenizerPtr> all_;
};

class BertPreTokenizer final : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    const std::string_view text = pieces.text;
    for (const Span span : pieces.spans) {
      size_t begin = span.begin;  // of the word that goes on
      for (size_t at = begin; at < span.end;) {
        const size_t here = at;
        const char32_t c = next_char(text, at);
        const bool space = is_space(c);
        if (!space && !is_punctuation(c)) continue;
        pieces.add_spare(begin, here);
        if (!space) pieces.add_spare(here, at);
        begin = at;
      }
      pieces.add_spare(begin, span.end);
    }
    pieces.take_spans();
  }
};

// Words, and what stands between them but for blanks.
class Whitespace final : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    enum class Sort { blank, word, other };
    for (const Span span : pieces.spans) {
      size_t begin = span.begin;
      Sort before = Sort::blank;
      for (size_t at = begin; at < span.end;) {
        const size_t here = at;
        const char32_t c = next_char(pieces.text, at);
        const Sort now = is_space(c) ? Sort::blank : is_word(c) ? Sort::word : Sort::other;
        if (now == before) continue;
        if (before != Sort::blank) pieces.add_spare(begin, here);
        begin = here, before = now;
      }
      if (before != Sort::blank) pieces.add_spare(begin, span.end);
    }
    pieces.take_spans();
  }
};

// Characters of one sort are the matches, one by one.
template <class IsMatch>
class ByChar final : public PreTokenizer {
 public:
  ByChar(IsMatch is_match, Behaviour behaviour) : is_match_(is_match), behaviour_(behaviour) {}
  void apply(Pieces& pieces) const override {
    for (const Span span : pieces.spans) {
      Splitter splitter(pieces, span, behaviour_, false);
      for (size_t at = span.begin; at < span.end;) {
        const size_t here = at;
        if (is_match_(next_char(pieces.text, at))) splitter.match(here, at);
      }
      splitter.finish(span.end);
    }
    pieces.take_spans();
  }

 private:
  IsMatch is_match_;
  Behaviour behaviour_;
};
template <class IsMatch>
PreTokenizerPtr by_char(IsMatch is_match, Behaviour behaviour) {
  return std::make_unique<ByChar<IsMatch>>(is_match, behaviour);
}

class Split final : public PreTokenizer {
 public:
  Split(Pattern pattern, Behaviour behaviour, bool inverted)
      : pattern_(std::move(pattern)), behaviour_(behaviour), inverted_(inverted) {}
  void apply(Pieces& pieces) const override {
    for (const Span span : pieces.spans) {
      Splitter splitter(pieces, span, behaviour_, inverted_);
      pattern_.for_each_match(pieces.of(span), [&](size_t begin, size_t end) {
        splitter.match(span.begin + begin, span.begin + end);
      });
      splitter.finish(span.end);
    }
    pieces.take_spans();
  }

 private:
  Pattern pattern_;
  Behaviour behaviour_;
  bool inverted_;
};

class Metaspace final : public PreTokenizer {
 public:
  enum class Prepend { never, first, always };
  Metaspace(std::string replacement, Prepend prepend, bool split)
      : replacement_(std::move(replacement)), prepend_(prepend), split_(split) {}

  void apply(Pieces& pieces) const override {
    std::string& to = pieces.spare_text;
    bool first = pieces.at_start;
    for (const Span span : pieces.spans) {
      const size_t begin = to.size();
      for (const char c : pieces.of(span))
        if (c == ' ')
          to += replacement_;
        else
          to += c;
      const bool wanted =
          prepend_ == Prepend::always || (prepend_ == Prepend::first && first && span.begin == 0);
      if (wanted && to.compare(begin, replacement_.size(), replacement_) != 0)
        to.insert(begin, replacement_);
      split(pieces, {begin, to.size()});
      first = false;
    }
    if (!pieces.spans.empty() && pieces.spans[0].begin > 0) pieces.at_start = false;
    pieces.take_both();
  }

 private:
  void split(Pieces& pieces, Span span) const {
    size_t begin = span.begin;
    for (size_t at = begin; split_;) {
      at = pieces.spare_text.find(replacement_, at);
      if (at == std::string::npos) break;
      pieces.add_spare(begin, at);
      begin = at;
      at += replacement_.size();
    }
    pieces.add_spare(begin, span.end);
  }

  std::string replacement_;
  Prepend prepend_;
  bool split_;
};

PreTokenizerPtr make_metaspace(PartFields& part) {
  const auto replacement = part.get<std::string>("replacement", "\u2581");
  if (count_chars(replacement) != 1) part.refuse("replacement", "one character");
  const bool prefix = part.get("add_prefix_space", true);
  auto scheme = part.get<std::string>("prepend_scheme", prefix ? "always" : "never");
  using Prepend = Metaspace::Prepend;
  const bool known = scheme == "always" || scheme == "first" || scheme == "never";
  if (!known) part.refuse("prepend_scheme", "one of always, first, never");
  part.leave("str_rep");
  const Prepend prepend = scheme == "always"  ? Prepend::always
                          : scheme == "first" ? Prepend::first
                                              : Prepend::never;
  return std::make_unique<Metaspace>(replacement, prepend, part.get("split", true));
}

Behaviour read_behaviour(PartFields& part, const char* otherwise) {
  const auto word = part.get<std::string>("behavior", otherwise);
  if (word == "Removed") return Behaviour::removed;
  if (word == "Isolated") return Behaviour::isolated;
  if (word == "MergedWithPrevious") return Behaviour::merged_with_previous;
  if (word == "MergedWithNext") return Behaviour::merged_with_next;
  if (word == "Contiguous") return Behaviour::contiguous;
  part.refuse("behavior",
              "one of Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

PreTokenizerPtr make_delimiter(PartFields& part) {
  const std::string delimiter = part.text("delimiter");
  if (count_chars(delimiter) != 1) part.refuse("delimiter", "one character");
  const char32_t wanted = char_at(delimiter, 0);
  return by_char([wanted](char32_t c) { return c == wanted; }, Behaviour::removed);
}

PreTokenizerPtr make(PartFields& part) {
  const std::string& type = part.type();
  if (type == "Sequence") return std::make_unique<Sequence>(part);
  if (type == "BertPreTokenizer") return make_bert_pre_tokenizer();
  if (type == "Whitespace") return std::make_unique<Whitespace>();
  if (type == "WhitespaceSplit") return by_char(is_space, Behaviour::removed);
  if (type == "Punctuation") return by_char(is_punctuation, read_behaviour(part, "Isolated"));
  if (type == "Digits") {
    const bool alone = part.get("individual_digits", false);
    return by_char(is_numeric, alone ? Behaviour::isolated : Behaviour::contiguous);
  }
  if (type == "CharDelimiterSplit") return make_delimiter(part);
  if (type == "Metaspace") return make_metaspace(part);
  if (type == "ByteLevel") {
    part.leave("trim_offsets");
    const bool prefix_space = part.get("add_prefix_space", true);
    return make_byte_level(prefix_space, part.get("use_regex", true));
  }
  if (type == "Split") {
    Pattern pattern(part);
    const Behaviour behaviour = read_behaviour(part, "");
    return std::make_unique<Split>(std::move(pattern), behaviour, part.get("invert", false));
  }
  part.refuse_type();
}

}  // namespace

void Splitter::add(size_t begin, size_t end, bool is_match) {
  bool grows = false, opens = true;
  switch (behaviour_) {
    case Behaviour::removed:
      opens = !is_match;
      break;
    case Behaviour::isolated:
      break;
    case Behaviour::merged_with_previous:
      grows = is_match && !before_;
      break;
    case Behaviour::merged_with_next:
      grows = !is_match && before_;
      break;
    case Behaviour::contiguous:
      grows = is_match == before_;
      break;
  }
  before_ = is_match;
  if (grows && open_) return void(open_->end = end);
  if (open_) pieces_.add_spare(open_->begin, open_->end);
  open_.reset();
  if (opens) open_ = {begin, end};
}

PreTokenizerPtr make_bert_pre_tokenizer() { return std::make_unique<BertPreTokenizer>(); }

PreTokenizerPtr read_pre_tokenizer(const nlohmann::json& json, const std::string& place) {
  if (json.is_null()) return nullptr;
  PartFields part(json, "pre_tokenizer", place);
  PreTokenizerPtr made = make(part);
  part.finish();
  return made;
}

}  // namespace fungi::token
