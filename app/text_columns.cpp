// SPDX-License-Identifier: Apache-2.0
#include "app/text_columns.h"

namespace fungi::app {

void TextColumnsArguments::add_to(CLI::App& verb) {
  verb.add_option("--text-column", text,
                  "Of a list of texts: the column with the text, by name or number from 1; left "
                  "out, it is guessed");
  verb.add_option("--label-column", label, "The same of the labels; none: there are none");
  verb.add_option("--id-column", id,
                  "The same of the ids; left out, the number of the line is the id");
}

void TextColumnsArguments::apply(DatasetOptions& options) const {
  options.text_column = text;
  options.label_column = label;
  options.id_column = id;
}

}  // namespace fungi::app
