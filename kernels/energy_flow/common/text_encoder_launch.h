// Launchers of the text encoder's kernels (C18), in the namespace that had them first; the training step takes them
// too. What they take is encoder_rows.h and attention.h. No CUDA headers.
#pragma once

#include "kernels/energy_flow/common/attention.h"
#include "kernels/energy_flow/common/encoder_rows.h"

namespace twinbench::energy_flow::text_encoder {

// One kernel each; launch_attend_back, launch_norm_back and launch_table_gradient two. Throw CudaError if a launch is
// refused. Without a text none may be called.
void launch_embed(const EmbedArguments<float>& arguments, kernels::Stream stream);
void launch_clear(const ClearArguments& arguments, kernels::Stream stream);
void launch_elements(const ElementArguments<float>& arguments, kernels::Stream stream);
void launch_attend(const Attention<float>& attention, kernels::Stream stream);
void launch_attend_back(const Attention<float>& attention, kernels::Stream stream);
void launch_norm(const ResidualNorm<float>& arguments, kernels::Stream stream);
void launch_norm_back(const ResidualNorm<float>& arguments, kernels::Stream stream);
void launch_mean(const MeanArguments<float>& arguments, kernels::Stream stream);
void launch_mean_back(const MeanArguments<float>& arguments, kernels::Stream stream);
void launch_table_gradient(const TableGradient<float>& arguments, kernels::Stream stream);  // of ids
void launch_place_gradient(const TableGradient<float>& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::text_encoder
