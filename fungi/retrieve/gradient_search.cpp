// SPDX-License-Identifier: Apache-2.0
#include "fungi/retrieve/gradient_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "fungi/feature/kept_factors.h"
#include "fungi/retrieve/gradient_products.h"

namespace fungi {
namespace {

// Queries, or what is searched.
struct Side {
  const char* name = "";  // in messages
  const Store* store = nullptr;
  std::vector<size_t> rows;                  // of the store
  Matrix<float> embeddings;                  // of length 1; empty when not asked for
  std::vector<KeptFactors> factors;          // by gradient
  std::vector<std::vector<double>> squares;  // by gradient, of each row
  std::vector<double> norms;                 // of all blocks together

  size_t block(size_t bytes) const {  // rows whose factors fit
    size_t each = 1;
    for (const KeptFactors& f : factors) each += f.bytes_per_row();
    return std::clamp<size_t>(bytes / each, 1, 512);
  }
};

// A power of two brings the largest entry of b near 1: gradients may be so small that their
// products would leave the range of f32. Directions do not change by a bit.
void scale(FactorRows& factors) {
  for (size_t i = 0; i < factors.b.rows(); ++i) {
    float* row = factors.b.row(i);
    float largest = 0;
    for (size_t j = 0; j < factors.b.cols(); ++j) largest = std::max(largest, std::fabs(row[j]));
    if (largest == 0) continue;
    const int exponent = -std::ilogb(largest);
    for (size_t j = 0; j < factors.b.cols(); ++j) row[j] = std::ldexp(row[j], exponent);
  }
}

struct Block {
  size_t first = 0, count = 0;
  std::vector<FactorRows> factors;  // by gradient
};

Block load(const Side& side, size_t first, size_t count) {
  Block block{first, count, {}};
  for (const KeptFactors& kept : side.factors) {
    block.factors.push_back(kept.read({side.rows.data() + first, count}));
    scale(block.factors.back());
  }
  return block;
}

std::vector<size_t> all_rows(const Store& store) {
  std::vector<size_t> rows(store.rows());
  std::iota(rows.begin(), rows.end(), size_t{0});
  return rows;
}

}  // namespace

struct GradientSearch::State {
  Metric metric;
  size_t block_bytes = 0, columns = 0;
  Side database, queries;
  std::vector<GradientProducts> products;  // by gradient
  std::vector<double> weights;             // of each, squared
  double embedding_weight = 1;
  std::optional<search::ExactKey> exact;  // of embeddings

  void open(Side& side, const std::vector<std::string>& gradients, bool embedding);
  void measure(Side& side, Pool& pool);
  void add_embedding(const Block& x, const Block& y, View<double> keys, Pool& pool) const;
  void add_gradient(size_t gradient, const Block& x, const Block& y, View<double> keys,
                    Pool& pool) const;
  // Calls visit(x, y, keys) for queries begin .. end and all rows, block by block; the keys of a
  // block of queries to all rows come one after the other.
  void sweep(
      size_t begin, size_t end, Pool& pool,
      const std::function<void(const Block&, const Block&, View<const double>)>& visit) const;
};

void GradientSearch::State::open(Side& side, const std::vector<std::string>& gradients,
                                 bool embedding) {
  for (const std::string& name : gradients) side.factors.emplace_back(*side.store, name);
  if (!embedding) return;
  std::vector<StoreBlock> blocks = side.store->select("embedding");
  blocks[0].weight = embedding_weight;
  side.embeddings = Matrix<float>(side.rows.size(), total_width(blocks));
  side.store->read(blocks, true, side.rows, side.embeddings);
}

// The squares of all gradients, and the norms of whole rows.
void GradientSearch::State::measure(Side& side, Pool& pool) {
  side.squares.assign(products.size(), {});
  const size_t step = side.block(block_bytes);
  for (size_t first = 0; first < side.rows.size() && !products.empty(); first += step) {
    const Block block = load(side, first, std::min(step, side.rows.size() - first));
    for (size_t g = 0; g < products.size(); ++g) {
      const std::vector<double> part = products[g].squares(block.factors[g].samples, pool);
      side.squares[g].insert(side.squares[g].end(), part.begin(), part.end());
    }
  }
  side.norms.assign(side.rows.size(), 0.0);
  for (size_t i = 0; i < side.rows.size(); ++i) {
    for (const std::vector<double>& squares : side.squares)
      if (!std::isfinite(squares[i])) fail_not_finite(side.name, side.rows[i]);
    if (!side.embeddings.empty()) {
      const double norm = exact->norm(side.embeddings.row(i));
      if (!std::isfinite(norm)) fail_not_finite(side.name, side.rows[i]);
      side.norms[i] = norm * norm;
    }
    for (size_t g = 0; g < weights.size(); ++g)
      side.norms[i] += side.squares[g][i] > 0 ? weights[g] : 0;
    side.norms[i] = std::sqrt(side.norms[i]);
  }
}

void GradientSearch::State::add_embedding(const Block& x, const Block& y, View<double> keys,
                                          Pool& pool) const {
  pool.parallel_for(x.count, 4, [&](size_t begin, size_t end, unsigned) {
    for (size_t i = begin; i < end; ++i)
      for (size_t j = 0; j < y.count; ++j)
        keys(i, j) +=
            (*exact)(queries.embeddings.row(x.first + i), database.embeddings.row(y.first + j));
  });
}

// A gradient of norm 0 stays 0, as it does when it is projected.
void GradientSearch::State::add_gradient(size_t gradient, const Block& x, const Block& y,
                                         View<double> keys, Pool& pool) const {
  Matrix<double> products_of(x.count, y.count);
  products[gradient].multiply(x.factors[gradient].samples, y.factors[gradient].samples, products_of,
                              pool);
  const double* x_squares = queries.squares[gradient].data() + x.first;
  const double* y_squares = database.squares[gradient].data() + y.first;
  for (size_t i = 0; i < x.count; ++i) {
    for (size_t j = 0; j < y.count; ++j) {
      const double square = x_squares[i] * y_squares[j];
      const double cosine = square > 0 ? products_of(i, j) / std::sqrt(square) : 0;
      // In this order, std::max leaves a NaN as it is.
      keys(i, j) += weights[gradient] *
                    (metric == Metric::euclidean
                         ? std::max((x_squares[i] > 0) + (y_squares[j] > 0) - 2 * cosine, 0.0)
                         : -cosine);
    }
  }
}

void GradientSearch::State::sweep(
    size_t begin, size_t end, Pool& pool,
    const std::function<void(const Block&, const Block&, View<const double>)>& visit) const {
  const size_t x_step = queries.block(block_bytes), y_step = database.block(block_bytes);
  for (size_t first = begin; first < end; first += x_step) {
    const Block x = load(queries, first, std::min(x_step, end - first));
    for (size_t row = 0; row < database.rows.size(); row += y_step) {
      const Block y = load(database, row, std::min(y_step, database.rows.size() - row));
      Matrix<double> keys(x.count, y.count);
      if (!database.embeddings.empty()) add_embedding(x, y, keys, pool);
      for (size_t g = 0; g < products.size(); ++g) add_gradient(g, x, y, keys, pool);
      if (metric == Metric::cosine) {
        for (size_t i = 0; i < x.count; ++i) {
          for (size_t j = 0; j < y.count; ++j) {
            const double length = queries.norms[x.first + i] * database.norms[y.first + j];
            keys(i, j) = length > 0 ? keys(i, j) / length : 0;
          }
        }
      }
      visit(x, y, keys);
    }
  }
}

GradientSearch::GradientSearch(const Store& database, const Store& queries,
                               std::string_view features, Pool& pool, GradientSearchOptions options)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.metric = options.metric;
  s.block_bytes = options.block_bytes;
  bool embedding = false;
  std::vector<std::string> gradients;
  queries.select(features);  // an Error where a block is not there
  for (const StoreBlock& block : database.select(features)) {
    if (block.name == "embedding") {
      embedding = true, s.columns += block.width;
      s.embedding_weight = block.weight;
    } else {
      gradients.push_back(block.name);
      s.weights.push_back(block.weight * block.weight);
    }
  }
  s.database.rows = std::move(options.database_rows);
  if (s.database.rows.empty()) s.database.rows = all_rows(database);
  s.queries.rows = std::move(options.query_rows);
  if (s.queries.rows.empty()) s.queries.rows = all_rows(queries);
  s.database.store = &database, s.database.name = "database";
  s.queries.store = &queries, s.queries.name = "queries";
  s.open(s.database, gradients, embedding);
  s.open(s.queries, gradients, embedding);
  if (s.database.embeddings.cols() != s.queries.embeddings.cols())
    fail(fmt::format("expected embeddings of width {}, found {}", s.database.embeddings.cols(),
                     s.queries.embeddings.cols()),
         queries.folder().string(), "use the same model for both stores");
  for (size_t g = 0; g < gradients.size(); ++g) {
    const KeptFactors &x = s.queries.factors[g], &y = s.database.factors[g];
    if (x.layer() != y.layer())
      fail(fmt::format("expected gradients of a {} x {} layer, found {} x {}", y.layer().outputs,
                       y.layer().row_length(), x.layer().outputs, x.layer().row_length()),
           queries.folder().string(), "use the same model and layer for both stores");
    s.products.emplace_back(y.layer(), x.terms(), y.terms());
    s.columns += y.layer().gradient_length();
  }
  // The cosine divides the inner product by the norms of whole rows, at the end of a block.
  s.exact.emplace(s.metric == Metric::euclidean ? Metric::euclidean : Metric::inner_product,
                  s.database.embeddings.cols());
  s.measure(s.database, pool);
  s.measure(s.queries, pool);
}

GradientSearch::~GradientSearch() = default;
size_t GradientSearch::rows() const { return state_->database.rows.size(); }
size_t GradientSearch::queries() const { return state_->queries.rows.size(); }
size_t GradientSearch::columns() const { return state_->columns; }

void GradientSearch::keys(size_t first, View<double> keys, Pool& pool) const {
  if (keys.cols != rows() || first > queries() || keys.rows > queries() - first)
    fail(fmt::format("expected keys of {} columns for queries from {} on of {}, found {} x {}",
                     rows(), first, queries(), keys.rows, keys.cols),
         "keys", "one row per query, one column per row of the database");
  state_->sweep(first, first + keys.rows, pool,
                [&](const Block& x, const Block& y, View<const double> block) {
                  for (size_t i = 0; i < x.count; ++i)
                    std::copy_n(block.row(i), y.count, keys.row(x.first - first + i) + y.first);
                });
}

Neighbours GradientSearch::knn(size_t k, Pool& pool) const {
  search::check_neighbours(k, rows());
  std::vector<search::Best> heap(queries() * k);
  std::vector<size_t> size(queries(), 0);
  const auto best_of = [&](size_t query) {
    return search::Selection(heap.data() + query * k, k, size[query]);
  };
  state_->sweep(0, queries(), pool, [&](const Block& x, const Block& y, View<const double> block) {
    pool.parallel_for(x.count, 16, [&](size_t begin, size_t end, unsigned) {
      for (size_t i = begin; i < end; ++i)
        for (size_t j = 0; j < y.count; ++j) {
          if (!std::isfinite(block(i, j)))
            fail_not_finite("queries", state_->queries.rows[x.first + i]);
          best_of(x.first + i).offer({block(i, j), static_cast<uint32_t>(y.first + j)});
        }
    });
  });
  Neighbours out{Matrix<uint32_t>(queries(), k), Matrix<double>(queries(), k)};
  for (size_t i = 0; i < queries(); ++i) {
    best_of(i).sort();
    for (size_t b = 0; b < k; ++b) {
      const search::Best& best = heap[i * k + b];
      out.index(i, b) = best.row;
      out.value(i, b) = state_->exact->value(best.key);
    }
  }
  return out;
}

}  // namespace fungi
