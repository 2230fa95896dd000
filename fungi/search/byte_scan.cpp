// SPDX-License-Identifier: Apache-2.0
// The scan on 8-bit codes (scan_kernel.h): a quarter of the memory and several times the products
// per second of f32.
#include <cstring>

#include "fungi/search/scan.h"

namespace fungi::search {
namespace {

class ByteScan final : public Scan {
 public:
  ByteScan(const ExactKey& exact, std::vector<float> centre)
      : Scan(exact, std::move(centre)),
        code_width_(round_up(width_, kCodeMultiple)),
        group_(exact.kernel().query_group) {}

  // A part and a handful of query groups stay in the second-level cache.
  size_t part_rows() const override { return 256; }
  size_t query_rows() const override { return 8 * kQueryGroups; }

  void scan(size_t query, size_t count, size_t part, unsigned, Hit* hits,
            uint32_t* counts) override {
    FUNGI_ASSERT(query % group_ == 0);
    const size_t first = part * part_rows(), rows = std::min(part_rows(), loaded_->count - first);
    const auto* panels = reinterpret_cast<const int8_t*>(loaded_->codes.data()) + first * code_width_;
    const auto* codes = reinterpret_cast<const uint8_t*>(query_codes_.data());
    const RowTerms terms = terms_from(first);
    for (size_t i = 0; i < count; i += group_)
      exact_.kernel().scan_bytes(code_width_, rows, codes + (query + i) * code_width_, panels,
                                 terms, &query_terms_[query + i], hits + i * part_rows(),
                                 part_rows(), counts + i);
  }

 protected:
  void reserve_queries(size_t count) override {
    query_codes_ = Buffer(round_up(count, group_) * code_width_);
  }
  void reserve_rows(size_t count) override {
    const size_t bytes = round_up(count, kPanelRows) * code_width_;
    if (bytes > own_rows_.codes.bytes()) own_rows_.codes = Buffer(bytes);
  }

  void store_query(size_t query, const float* v, double) override {
    const CodeTerms terms = interleave(true, query, group_, v, query_codes_);
    set_query_terms(query, terms.scale, terms.norm, terms.residual, 0);
  }
  void store_row(size_t row, const float* v, double norm) override {
    const CodeTerms terms = interleave(false, row, kPanelRows, v, own_rows_.codes);
    set_row_terms(row, terms.scale, terms.residual, norm, kCodeOffset * terms.sum);
  }

 private:
  // Writes the codes of v as member `row` of its group: [group][code_width/4][members][4].
  CodeTerms interleave(bool query, size_t row, size_t members, const float* v, Buffer& out) const {
    std::vector<int8_t> codes(code_width_);
    const CodeTerms terms = exact_.kernel().encode(query, code_width_, v, codes.data());
    if (query)
      for (int8_t& c : codes) c = int8_t(uint8_t(c + kCodeOffset));
    std::byte* to = out.data() + row / members * members * code_width_ + row % members * 4;
    for (size_t t = 0; t < code_width_; t += 4, to += members * 4) std::memcpy(to, &codes[t], 4);
    return terms;
  }

  const size_t code_width_, group_;
  Buffer query_codes_;
};

}  // namespace

std::unique_ptr<Scan> make_byte_scan(const ExactKey& exact, std::vector<float> centre) {
  return std::make_unique<ByteScan>(exact, std::move(centre));
}

}  // namespace fungi::search
