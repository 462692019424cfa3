"""Parameters, checkpoint sizes and FLOPs against published figures, each with its tolerance."""

import pytest

from warmset.model import (
    active_linear_parameters,
    active_parameters,
    decode_flops_per_step,
    load_model,
    num_parameters,
    prefill_flops,
    shipped_models,
    weight_bytes,
)
from warmset.model.checkpoints import checkpoint_formats

# Parameters of the checkpoints as Hugging Face counts them in their safetensors: the text part, without MTP
# layers, written down from their pages; those of DeepSeek-V3, gpt-oss-120b, Mixtral-8x7B, gemma-3-4b and 27b,
# LFM2-2.6B and Nemotron-3-Nano were read again in public files. What our count may leave out are biases,
# norms of queries and keys, and attention sinks.
COUNTED = {
    "Llama-2-7b-hf": 6_738_415_616,
    "Llama-2-70b-hf": 68_976_648_192,
    "Llama-3.2-1B": 1_235_814_400,
    "Meta-Llama-3.1-8B": 8_030_261_248,
    "Meta-Llama-3.1-70B": 70_553_706_496,
    "Meta-Llama-3.1-405B": 405_853_388_800,
    "Mistral-7B-v0.1": 7_241_732_096,
    "Mistral-Nemo-Instruct-2407": 12_247_782_400,
    "Mixtral-8x7B-v0.1": 46_702_792_704,
    "Mixtral-8x22B-v0.1": 140_620_634_112,
    "Qwen2-7B-Instruct": 7_615_616_512,
    "Qwen2.5-72B-Instruct": 72_706_203_648,
    "Qwen3-0.6B": 596_049_920,
    "Qwen3-8B": 8_190_735_360,
    "Qwen3-32B": 32_762_123_264,
    "Qwen3-235B-A22B": 235_093_634_560,
    "Qwen3-Coder-480B-A35B-Instruct": 480_154_875_392,
    "gemma-2b": 2_506_172_416,
    "gemma-2-9b": 9_241_705_984,
    "gemma-2-27b": 27_227_128_320,
    "gemma-3-1b-it": 999_885_952,
    "gemma-3-4b-it": 3_880_263_168,
    "gemma-3-27b-it": 27_009_346_304,
    "Phi-3-mini-4k-instruct": 3_821_079_552,
    "Phi-4-mini-instruct": 3_836_021_760,
    "microsoft/phi-4": 14_659_507_200,
    "openai-community/gpt2": 124_439_808,
    "gpt_bigcode-santacoder": 1_124_886_528,
    "bigcode/starcoder": 15_517_456_384,
    "starcoder2-7b": 7_173_923_840,
    "falcon-7b": 6_921_720_704,
    "falcon-40b": 41_303_293_952,
    "mpt-7b": 6_649_286_656,
    "chatglm3-6b": 6_243_584_000,
    "OLMo-2-1124-7B": 7_298_617_344,
    "Olmo-3.1-32B-Instruct": 32_233_522_176,
    "EXAONE-4.0-32B": 32_003_216_384,
    "c4ai-command-r-v01": 34_980_831_232,
    "c4ai-command-r7b-12-2024": 8_028_033_024,
    "LFM2-2.6B": 2_569_272_320,
    "dbrx-instruct": 131_596_523_520,
    "AI21-Jamba-1.5-Mini": 51_570_323_328,
    "Mamba-Codestral-7B-v0.1": 7_285_403_648,
    "falcon-mamba-7b-instruct": 7_272_665_088,
    "granite-4.0-h-tiny": 6_939_037_248,
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": 31_577_937_344,
    "Llama-3_3-Nemotron-Super-49B-v1": 49_867_145_216,
    "Kimi-Linear-48B-A3B-Instruct": 49_122_681_728,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "MiniMax-M1-80k": 456_089_655_296,
    "DeepSeek-V2-Lite": 15_706_484_224,
    "deepseek-ai/DeepSeek-V2": 235_741_434_880,
    "deepseek-ai/DeepSeek-V3": 671_026_419_200,
    "DeepSeek-R1": 671_026_419_200,
    "Kimi-K2-Instruct": 1_026_408_232_448,
    "GLM-4.5V": 106_852_251_264,  # GLM-4.5-Air, its language model
    "whisper-large-v3": 1_543_490_560,
}
COUNTED_TOLERANCE = 0.0006

# Billions, as the makers say in model cards and reports, to three digits or more.
STATED = {
    "GLM-4.5": 352.8,  # without the MTP layer, with which it is 358
    "zai-org/GLM-5": 743.9,  # 744 in its report
    "MiniMax-M2.5": 228.7,
    "MiMo-V2-Flash": 309,
    "Qwen3-Next-80B-A3B-Instruct": 79.7,  # 81.3 with the MTP layer
    "Qwen3.5-397B-A17B": 396.3,
    "Kimi-K2.5": 1026.4,  # Kimi-K2's language model
    "Llama-4-Scout-17B-16E-Instruct": 107.8,  # 108.6 with the vision part
    "Llama-4-Maverick-17B-128E-Instruct": 400.7,  # 401.6 with the vision part
    "Falcon-H1-7B-Instruct": 7.59,
    "Nemotron-H-8B-Base-8K": 8.10,
    "MiniCPM3-4B": 4.07,
    "DeepSeek-V3.2": 671.9,  # DeepSeek-V3 and 61 indexers of 13.96 M
    "DeepSeek-V4-Flash": 284,
    "LongCat-Flash-Chat": 560,
    "step3": 316,  # 321 with the vision part
    "Hunyuan-Large": 389,
    "Inkling": 975,
    "gemma-3-12b-it": 11.77,
}
STATED_TOLERANCE = 0.003

# Billions in a name or a headline, rounded nobody says how; some count MTP layers or vision parts.
NOMINAL = {
    "MiMo-7B-Base": (7.6, 0.03),
    "Qwen3.5-27B": (27, 0.03),
    "Qwen3.5-35B-A3B": (35, 0.03),
    "Qwen3-VL-8B-Instruct": (8.2, 0.03),
    "Hunyuan-7B-Instruct": (7.5, 0.03),
    "Nemotron-H-56B-Base-8K": (56, 0.03),
    "NVIDIA-Nemotron-3-Super-120B-A12B-FP8": (120, 0.03),
    "NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16": (550, 0.03),
    "Llama-3.2-90B-Vision-Instruct": (88.6, 0.03),  # with about 0.9 B of vision encoder
    "GLM-5.2": (744, 0.03),
    "DeepSeek-V4-Pro": (1600, 0.03),
    "Kimi-K3": (2800, 0.03),
    "Step-3.7-Flash": (196, 0.03),
    "Ling-3.0-Flash": (124, 0.03),
    "MiniMax-M3": (428, 0.03),
    "gemma-4-26B-A4B": (25.2, 0.03),
    "Gemma-4-31B-IT-NVFP4": (30.7, 0.03),
    "gemma-4-E4B-it": (8.0, 0.10),  # with encoders of about half a billion
    "gemma-3n-E4B-it": (6.87, 0.03),  # without AltUp and Laurel, and the projections that nothing uses
}
# No figure is published for these, or their config is not complete: Gemma-4 E2B lacks its wide MLPs.
WITHOUT_A_FIGURE = {
    "Qwen3.8-Flash-Next",
    "DeepSeek-V4.1-Flash",
    "Hy4-preview",
    "GLM-5.3-Flash",
    "gemma-4-E2B-it",
    "Llama-3.1-70B-Instruct-FP8",  # Llama-3.1-70B again
}

# Billions. gpt-oss (model card) counts the LM head but not the embedding: 0.579 B less than we do.
ACTIVE_PARAMETERS = {
    "Qwen3-235B-A22B": (22.19, 0.002),
    "Qwen3-Coder-480B-A35B-Instruct": (35.5, 0.002),
    "Mixtral-8x7B-v0.1": (12.88, 0.002),
    "Mixtral-8x22B-v0.1": (39.1, 0.003),
    "deepseek-ai/DeepSeek-V3": (37.55, 0.002),
    "Kimi-K2-Instruct": (32.86, 0.002),
    "gpt-oss-20b": (3.61 + 0.579, 0.003),
    "gpt-oss-120b": (5.13 + 0.579, 0.003),
    "MiniMax-M1-80k": (45.9 + 2.458, 0.002),  # its report counts neither embedding nor LM head
    "Llama-4-Maverick-17B-128E-Instruct": (17.17, 0.003),
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (3.6, 0.02),  # 3.2 without embeddings
    "AI21-Jamba-1.5-Mini": (12, 0.02),
    "Hunyuan-Large": (52, 0.02),
}

# Bytes of the published files. GiB from the gpt-oss model card; Kimi-K2 Thinking, with K2.5's language model,
# is 594 GB; Llama and Mixtral from `total_size` of their safetensors index.
CHECKPOINTS = {
    "gpt-oss-20b": (12.80 * 2**30, 0.003),
    "gpt-oss-120b": (60.8 * 2**30, 0.003),
    "Kimi-K2.5": (594e9, 0.003),
    "MiniMax-M2.5": (230e9, 0.003),
    "Meta-Llama-3.1-8B": (16_060_522_496, 1e-6),
    "Mixtral-8x7B-v0.1": (93_405_585_408, 1e-6),
}

# "Insights into DeepSeek-V3" (arXiv 2505.09343), table 2: training GFLOP per token at 4,096 tokens, which is
# three times the forward pass with logits at every position. The paper rounds to whole GFLOP. Its 394 for
# Qwen-72B is left out: it implies 65.7 B parameters where that model has 70.2 B in linear layers.
TRAINING_GFLOP_PER_TOKEN = {"DeepSeek-V3": (250, 0.005), "DeepSeek-V2": (155, 0.005)}
TRAINING_GFLOP_PER_TOKEN |= {"Meta-Llama-3.1-405B": (2448, 0.012)}


@pytest.mark.parametrize("model", COUNTED)
def test_counted_parameters(model):
    assert num_parameters(load_model(model)) == pytest.approx(COUNTED[model], rel=COUNTED_TOLERANCE)


@pytest.mark.parametrize("model", STATED)
def test_stated_parameters(model):
    assert num_parameters(load_model(model)) / 1e9 == pytest.approx(STATED[model], rel=STATED_TOLERANCE)


@pytest.mark.parametrize("model", NOMINAL)
def test_nominal_parameters(model):
    nominal, tolerance = NOMINAL[model]
    assert num_parameters(load_model(model)) / 1e9 == pytest.approx(nominal, rel=tolerance)


def test_every_shipped_model_has_its_figure():
    named = [name.rpartition("/")[2] for name in (*COUNTED, *STATED, *NOMINAL, *WITHOUT_A_FIGURE)]
    assert sorted(named) == sorted(shipped.model.rpartition("/")[2] for shipped in shipped_models())


@pytest.mark.parametrize("model", ACTIVE_PARAMETERS)
def test_active_parameters(model):
    published, tolerance = ACTIVE_PARAMETERS[model]
    assert active_parameters(load_model(model)) / 1e9 == pytest.approx(published, rel=tolerance)


@pytest.mark.parametrize("model", CHECKPOINTS)
def test_checkpoint_bytes(model):
    spec = load_model(model)
    published, tolerance = CHECKPOINTS[model]
    assert weight_bytes(spec, checkpoint_formats(spec)) == pytest.approx(published, rel=tolerance)


@pytest.mark.parametrize("model", TRAINING_GFLOP_PER_TOKEN)
def test_training_flops(model):
    spec = load_model(model)
    published, tolerance = TRAINING_GFLOP_PER_TOKEN[model]
    logits = 2 * spec.vocab_size * spec.hidden_size * (4096 - 1)
    forward = (prefill_flops(spec, 4096, 0).total + logits) / 4096
    assert 3 * forward / 1e9 == pytest.approx(published, rel=tolerance)


def test_absorbed_latent_attention():
    # 2 x 128 heads x (2 x 512 + 64): 278,528 operations for each cached token and layer of DeepSeek-V3.
    spec = load_model("DeepSeek-V3")
    assert decode_flops_per_step(spec, 1, 1000).attention == 61 * 1000 * 278_528


def test_where_attention_costs_as_much_as_the_weights():
    # About 104 K tokens for Llama-70B: N_act / (heads x head size x layers), with 68.45 B in linear layers.
    spec = load_model("Meta-Llama-3.1-70B")
    assert active_linear_parameters(spec) / 1e9 == pytest.approx(68.45, rel=0.002)
    flops = prefill_flops(spec, 104_000, 0)
    assert flops.attention / flops.gemm == pytest.approx(1, rel=0.01)
