// The kernels of text_encoder: those of every encoder and attention (kernels/energy_flow/common), by this component's
// names.
#pragma once

#include "kernels/energy_flow/common/attention_back_kernel.h"
#include "kernels/energy_flow/common/attention_kernel.h"
#include "kernels/energy_flow/common/encoder_rows_kernel.h"
#include "kernels/energy_flow/common/token_sums_kernel.h"
#include "kernels/energy_flow/text_encoder/arguments.h"
#include "kernels/energy_flow/text_encoder/math.h"

namespace twinbench::energy_flow::text_encoder {

struct Embed : EncoderEmbed {};
struct Clear : EncoderClear {};
struct Elements : EncoderElements {};
struct Attend : AttentionForward {};
struct AttendQueriesBack : AttentionQueriesBack {};
struct AttendKeysBack : AttentionKeysBack {};
struct Norm : EncoderNorm {};
struct NormBack : EncoderNormBack {};
struct NormColumns : EncoderNormColumns {};
struct Mean : EncoderMean {};
struct MeanBack : EncoderMeanBack {};
struct SortTokens : EncoderSortTokens {};
struct TableSums : EncoderTableSums {};
struct PlaceSums : EncoderPlaceSums {};

}  // namespace twinbench::energy_flow::text_encoder
