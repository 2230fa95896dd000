// SPDX-License-Identifier: Apache-2.0
// Products of columns of shared rows. Blocks of rows are dealt out to the ranks in turns. Each
// multiplies its own while the sums of the blocks before travel, tile by tile, from rank to rank:
// whoever gets a tile adds its blocks and sends it to the next.
#include <algorithm>
#include <deque>

#include "fungi/comm/bytes.h"
#include "fungi/comm/comm.h"
#include "fungi/pca/covariance.h"

namespace fungi {
namespace {

constexpr Comm::Tag kSums = 5;
constexpr size_t kTile = BlockProducts::kTile, kTileNumbers = kTile * kTile;
constexpr size_t kTurnBytes = size_t{64} << 20;  // of products that wait for their sums
constexpr size_t kMostBlocks = 8;                // of a turn

class Ring {
 public:
  Ring(size_t total, size_t width, const LoadRun& load, Pool& pool, Comm& comm,
       Covariance::Products products)
      : total_(total),
        width_(width),
        load_(load),
        pool_(pool),
        comm_(comm),
        products_(width, products),
        blocks_((total + BlockProducts::kRows - 1) / BlockProducts::kRows) {
    // Long turns send less, short ones share better.
    const size_t fits = kTurnBytes / (products_.tiles() * kTileNumbers * sizeof(float));
    turn_ = std::clamp<size_t>(std::min(fits, blocks_ / (4 * comm.size())), 1, kMostBlocks);
  }

  Moments run() {
    share_shift();
    for (size_t first = comm_.rank() * turn_; first < blocks_; first += turn_ * comm_.size()) {
      const size_t count = std::min(turn_, blocks_ - first);
      multiply(first, count);
      pass_on(first, count);
    }
    if (!comm_.first()) return {total_, {}, {}};
    Matrix<double> scatter(width_, width_);
    const std::string sums = receive(last_rank());
    for (size_t t = 0; t < products_.tiles(); ++t) {
      const std::string bytes = receive(last_rank());
      const auto [i, j] = BlockProducts::tile_of(t);
      for (size_t r = 0; r < products_.tile_columns(i); ++r)
        std::memcpy(scatter.row(i * kTile + r) + j * kTile,
                    bytes.data() + r * kTile * sizeof(double),
                    products_.tile_columns(j) * sizeof(double));
    }
    return moments_of(total_, products_.shift(), numbers(sums), std::move(scatter), pool_);
  }

 private:
  size_t last_rank() const { return (blocks_ - 1) / turn_ % comm_.size(); }

  Matrix<float> block(size_t b) const {
    const size_t first = b * BlockProducts::kRows;
    return load_(first, std::min(BlockProducts::kRows, total_ - first));
  }

  // The mean of the first block, as one process has it.
  void share_shift() {
    ByteWriter out;
    if (comm_.first()) {
      products_.take(block(0), 0, pool_);
      out.numbers(products_.shift());
    }
    const std::string bytes = comm_.broadcast(out.take());
    products_.set_shift(ByteReader(bytes).numbers<float>());
  }

  void multiply(size_t first, size_t count) {
    tiles_.resize(count * products_.tiles() * kTileNumbers);
    sums_.clear();
    for (size_t b = 0; b < count; ++b) {
      const Matrix<float> rows = block(first + b);
      sums_.push_back(products_.take(rows, (first + b) * BlockProducts::kRows, pool_));
      products_.each_tile(pool_, [&](size_t i, size_t j, const Matrix<float>& tile) {
        const size_t t = i * (i + 1) / 2 + j;
        std::copy_n(tile.data(), kTileNumbers, product(b, t));
      });
    }
  }

  float* product(size_t b, size_t tile) {
    return tiles_.data() + (b * products_.tiles() + tile) * kTileNumbers;
  }

  // Takes the sums of all blocks before, adds its own in their order, and hands them on.
  void pass_on(size_t first, size_t count) {
    const bool begins = first == 0, ends = first + count == blocks_;
    const size_t from = (comm_.rank() + comm_.size() - 1) % comm_.size();
    const size_t to = ends ? 0 : (comm_.rank() + 1) % comm_.size();
    std::vector<double> sum = begins ? std::vector<double>(width_) : numbers(receive(from));
    for (const std::vector<double>& own : sums_)
      for (size_t c = 0; c < width_; ++c) sum[c] += own[c];
    give(to, std::string(reinterpret_cast<const char*>(sum.data()), width_ * sizeof(double)));
    for (size_t t = 0; t < products_.tiles(); ++t) {
      std::string bytes = begins ? std::string(kTileNumbers * sizeof(double), '\0') : receive(from);
      double row[kTile];
      for (size_t r = 0; r < kTile; ++r) {
        char* const at = bytes.data() + r * sizeof row;
        std::memcpy(row, at, sizeof row);
        for (size_t b = 0; b < count; ++b)
          for (size_t c = 0; c < kTile; ++c) row[c] += product(b, t)[r * kTile + c];
        std::memcpy(at, row, sizeof row);
      }
      give(to, std::move(bytes));
    }
  }

  void give(size_t to, std::string bytes) {
    if (to == comm_.rank())
      kept_.push_back(std::move(bytes));
    else
      comm_.send(to, kSums, std::move(bytes));
  }
  std::string receive(size_t from) {
    if (from != comm_.rank()) return comm_.receive(from, kSums);
    std::string bytes = std::move(kept_.front());
    kept_.pop_front();
    return bytes;
  }
  static std::vector<double> numbers(const std::string& bytes) {
    std::vector<double> values(bytes.size() / sizeof(double));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  const size_t total_, width_;
  const LoadRun& load_;
  Pool& pool_;
  Comm& comm_;
  BlockProducts products_;
  const size_t blocks_;
  size_t turn_ = 1;
  std::vector<float> tiles_;               // [block of the turn][tile]
  std::vector<std::vector<double>> sums_;  // of the columns, by block of the turn
  std::deque<std::string> kept_;           // sums whose next rank is this one
};

}  // namespace

Moments moments_on_ranks(size_t total, size_t width, const LoadRun& load, Pool& pool, Comm& comm,
                         Covariance::Products products) {
  if (total == 0) fail("expected at least one row, found none", "features", "");
  return Ring(total, width, load, pool, comm, products).run();
}

}  // namespace fungi
