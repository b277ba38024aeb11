// The command-line side of src/formats.
#include "harness/command/data.h"

#include <iostream>

#include "harness/command/command.h"
#include "src/formats/convert.h"

namespace twinbench {

CLI::App* add_data_command(CLI::App& app, DataOptions& options) {
  auto* data = app.add_subcommand("data", "Dataset files: from text, .pt, safetensors, JSONL");
  data->require_subcommand(1);
  const auto add = [&](const std::string& action, const std::string& help) {
    auto* command = data->add_subcommand(action, help);
    command->callback([&options, action] { options.action = action; });
    return command;
  };
  const auto add_conversion = [&](CLI::App* command) {
    command->add_option("--stored", options.stored, "How embeddings are stored")
        ->check(CLI::IsMember({"fp32", "bf16"}));
    command->add_option("--width", options.width, "Refuse another embedding width")->check(CLI::PositiveNumber);
    command->add_flag("--normalise", options.normalise, "Every embedding to norm 1");
    command->add_flag("--drop-invalid", options.drop_invalid,
                      "Leave rows out that validation refuses, instead of failing");
  };
  auto* make =
      add("make", "Writes an EFDS file from dataset or text files; without any, from the machine's own English texts");
  make->add_option("inputs", options.inputs, "Source files");
  make->add_option("--out", options.out, "The .efds file to write")->required();
  make->add_option("--words", options.words,
                   "From text: fewest and most words of a sentence that is kept (default 4 40)")
      ->expected(2)
      ->type_name("MIN MAX");
  make->add_option("--rows", options.rows,
                   "From text: most pairs, thinned evenly; 0: all (default 5021, as documented)")
      ->check(CLI::NonNegativeNumber);
  add_conversion(make);
  auto* info = add("info", "Checks a dataset file and describes it");
  info->add_option("file", options.inputs, "Dataset file")->required()->expected(1);
  info->add_flag("--json", options.as_json, "As JSON");
  auto* convert = add("convert", "Reads any dataset format, writes by extension (.efds, .safetensors, .jsonl)");
  convert->add_option("file", options.inputs, "Source file")->required()->expected(1);
  convert->add_option("--out", options.out, "File to write")->required();
  add_conversion(convert);
  return data;
}

int data_command(const DataOptions& options) {
  if (options.action == "info") {
    const auto description = describe_dataset(options.inputs.front());
    std::cout << (options.as_json ? description.json + "\n" : description.text);
    return kExitPass;
  }
  ConvertOptions convert;
  convert.normalise = options.normalise;
  convert.drop_invalid = options.drop_invalid;
  if (!options.stored.empty()) convert.stored = options.stored == "bf16" ? StoredType::kBf16 : StoredType::kFp32;
  if (options.width > 0) convert.expected_width = options.width;
  if (!options.words.empty()) {
    convert.text.smallest_words = options.words[0];
    convert.text.largest_words = options.words[1];
  }
  if (options.rows >= 0) convert.text.largest_rows = options.rows;
  const auto written = options.action == "make" ? make_dataset(options.inputs, options.out, convert)
                                                : convert_dataset(options.inputs.front(), options.out, convert);
  std::cout << options.out << ": " << written.rows << " pairs, embeddings " << written.width << " wide\n";
  for (const auto& remark : written.remarks) std::cout << "  " << remark << '\n';
  return kExitPass;
}

}  // namespace twinbench
