package huggingface

// aroundNorms are the norms of models that have some behind attention and feed-forward.
var aroundNorms = map[string]string{
	"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
}

// graniteNumbers are the multipliers of all parts.
var graniteNumbers = []key{
	{"embedding_scale", "embedding_multiplier"}, {"residual_scale", "residual_multiplier"},
	{"attention.scale", "attention_multiplier"}, {"logit_scale", "logits_scaling"},
}

// behindNorms names the norms of models that have no others.
var behindNorms = map[string]string{"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"}

// postAttention is the norm of the feed-forward, as some files have it.
var postAttention = map[string]string{"post_attention_layernorm": "post_attention_norm"}

// expertBias names the bias by which experts are chosen, besides.
var expertBias = map[string]string{
	"mlp.gate.e_score_correction_bias": "exp_probs_b.bias", "mlp.e_score_correction_bias": "exp_probs_b.bias", "block_sparse_moe.e_score_correction_bias": "exp_probs_b.bias",
	"feed_forward.expert_bias": "exp_probs_b.bias",
}

// sharedCounts and scaledExperts are keys of mixtures of which every row takes some experts.
var (
	sharedCounts  = []key{{"expert_shared_count", "n_shared_experts"}, {"leading_dense_block_count", "first_k_dense_replace"}}
	scaledExperts = []key{{"expert_weights_scale", "routed_scaling_factor"}}
	// countedExperts has other models' names for sharedCounts.
	countedExperts = []key{{"expert_shared_count", "num_shared_experts"}, {"leading_dense_block_count", "first_k_dense_replace"}}
	gatedExperts   = &mixture{width: "moe_intermediate_size", shared: "shared_expert_intermediate_size", sameAsEveryone: true}
	routedExperts  = &mixture{count: "n_routed_experts", width: "moe_intermediate_size", norm: true, optional: true}
)

// deltaNames are the parts of gated delta nets.
var deltaNames = map[string]string{
	"linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate", "linear_attn.in_proj_b": "ssm_beta", "linear_attn.in_proj_a": "ssm_alpha",
	"linear_attn.in_proj_qkvz": "attn_qkvz", "linear_attn.in_proj_ba": "ssm_ba", "linear_attn.conv1d": "ssm_conv1d", "linear_attn.norm": "ssm_norm",
	"linear_attn.out_proj": "ssm_out", "linear_attn.A_log": "ssm_a", "linear_attn.dt_bias": "ssm_dt.bias",
}

// deltaNorm is the norm of delta nets.
var deltaNorm = []string{"ssm_norm.weight"}

// stateSpaceNames names the tensors of state spaces.
var stateSpaceNames = map[string]string{
	"mamba.in_proj": "ssm_in", "mamba.conv1d": "ssm_conv1d", "mamba.norm": "ssm_norm", "mamba.out_proj": "ssm_out",
	"mamba.A_log": "ssm_a", "mamba.D": "ssm_d", "mamba.dt_bias": "ssm_dt.bias",
}

// preFFNames names the tensors of layers that have feed-forwards too.
var preFFNames = with(stateSpaceNames, map[string]string{
	"pre_ff_layernorm": "ffn_norm", "feed_forward.gate_proj": "ffn_gate", "feed_forward.up_proj": "ffn_up", "feed_forward.down_proj": "ffn_down",
})

// graniteExperts names the tensors of Granite's mixtures, and of feed-forwards that are called shared.
var graniteExperts = map[string]string{
	"block_sparse_moe.input_linear": "ffn_gate_up_exps", "block_sparse_moe.output_linear": "ffn_down_exps",
	"shared_mlp.input_linear": "ffn_gate_up_shexp", "shared_mlp.output_linear": "ffn_down_shexp",
}

// mixerNames are the parts of layers that are a state space.
var mixerNames = map[string]string{
	"norm": "attn_norm", "mixer.in_proj": "ssm_in", "mixer.conv1d": "ssm_conv1d", "mixer.norm": "ssm_norm", "mixer.out_proj": "ssm_out",
	"mixer.A_log": "ssm_a", "mixer.D": "ssm_d", "mixer.dt_bias": "ssm_dt.bias",
}

// nemotronNames are the parts of Nemotron's layers, of which each has one.
var nemotronNames = with(mixerNames, map[string]string{
	"mixer.q_proj": "attn_q", "mixer.k_proj": "attn_k", "mixer.v_proj": "attn_v", "mixer.o_proj": "attn_output", "mixer.up_proj": "ffn_up", "mixer.down_proj": "ffn_down",
	"mixer.gate": "ffn_gate_inp", "mixer.gate.e_score_correction_bias": "exp_probs_b.bias", "mixer.gate.e_score_correction.bias": "exp_probs_b.bias",
	"mixer.shared_experts.up_proj": "ffn_up_shexp", "mixer.shared_experts.down_proj": "ffn_down_shexp",
	"mixer.fc1_latent_proj": "ffn_latent_down", "mixer.fc2_latent_proj": "ffn_latent_up",
})

// mixerCalled are the sizes of their state spaces, and their epsilon.
var mixerCalled = map[string]string{"rms_norm_eps": "layer_norm_epsilon", "mamba_d_conv": "conv_kernel", "mamba_n_groups": "n_groups"}

// latentNames are the parts of multi-head latent attention.
var latentNames = with(expertBias, map[string]string{
	"self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
	"self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm", "self_attn.kv_b_proj": "attn_kv_b",
})

// lfm2Names and lfm2Called are LFM2's words.
var (
	lfm2Names = with(expertBias, map[string]string{
		"operator_norm": "attn_norm", "ffn_norm": "ffn_norm", "self_attn.out_proj": "attn_output", "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm",
		"feed_forward.w1": "ffn_gate", "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down", "feed_forward.gate": "ffn_gate_inp",
		"conv.conv": "shortconv.conv", "conv.in_proj": "shortconv.in_proj", "conv.out_proj": "shortconv.out_proj",
	})
	lfm2Called = map[string]string{"rms_norm_eps": "norm_eps"}
)

// gemma4Names names the tensors that Gemma 4 has besides Gemma 2's.
var gemma4Names = map[string]string{
	"pre_feedforward_layernorm_2": "pre_ffw_norm_2", "post_feedforward_layernorm_1": "post_ffw_norm_1", "post_feedforward_layernorm_2": "post_ffw_norm_2",
	"router.proj": "ffn_gate_inp", "router.scale": "ffn_gate_inp.scale", "router.per_expert_scale": "ffn_down_exps.scale",
	"experts.gate_up_proj": "ffn_gate_up_exps.weight", "experts.down_proj": "ffn_down_exps.weight", "layer_scalar": "layer_output_scale.weight",
	"per_layer_input_gate": "inp_gate", "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm",
}

// falconLayouts fold Falcon-H1's multipliers into matrices.
var falconLayouts = map[string]layout{
	"attn_q.weight": factor("attention_in_multiplier"), "attn_k.weight": factor("attention_in_multiplier", "key_multiplier"), "attn_v.weight": factor("attention_in_multiplier"),
	"attn_output.weight": factor("attention_out_multiplier"), "ssm_out.weight": factor("ssm_out_multiplier"), "token_embd.weight": factor("embedding_multiplier"),
	"output.weight": factor("lm_head_multiplier"), "ffn_gate.weight": times(mlpMultiplier(0)), "ffn_down.weight": times(mlpMultiplier(1)), "ssm_in.weight": times(falconParts),
}

// architectures is keyed by model_type of config.json. What each is has its source in
// package models.
var architectures = map[string]architecture{
	"llama":     {name: "llama", paired: true, choose: llamaOf, others: map[string]func(*architecture){"bitnet": asBitNet}},
	"mistral":   {name: "llama", paired: true},
	"mixtral":   {name: "llama", paired: true, mixture: &mixture{}},
	"qwen2":     {name: "qwen2"},
	"qwen2_moe": {name: "qwen2moe", mixture: &mixture{width: "moe_intermediate_size", norm: true, shared: "shared_expert_intermediate_size", sameAsEveryone: true}},
	"qwen3":     {name: "qwen3"},
	"qwen3_moe": {name: "qwen3moe", mixture: &mixture{width: "moe_intermediate_size", norm: true, sameAsEveryone: true}},
	"olmoe":     {name: "olmoe", mixture: &mixture{norm: true}},
	"gemma2": {
		name: "gemma2", activation: "gelu_pytorch_tanh", names: aroundNorms, plusOne: true, windows: 2, more: checkQueryWidth,
		numbers:  []key{{"attn_logit_softcapping", "attn_logit_softcapping"}, {"final_logit_softcapping", "final_logit_softcapping"}},
		defaults: map[string]any{"head_dim": 256, "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "sliding_window": 4096},
	},
	"gemma3_text": {
		name: "gemma3", activation: "gelu_pytorch_tanh", names: aroundNorms, plusOne: true, windows: 6, more: checkQueryWidth,
		choose: gemmaOf, others: map[string]func(*architecture){"gemma-embedding": func(a *architecture) { a.encoder = true }}, numbers: []key{{"final_logit_softcapping", "final_logit_softcapping"}},
		defaults: map[string]any{
			"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-6,
			"sliding_window": 4096, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
		},
	},
	"phi3":    {name: "phi3"},
	"smollm3": {name: "smollm3", paired: true, more: checkNoRope},
	"olmo2": {
		name: "olmo2", windows: 4,
		names: behindNorms,
	},
	"olmo3": {
		name: "olmo2", windows: 4,
		names: behindNorms,
	},
	"granite": {name: "granite", paired: true, numbers: graniteNumbers},
	"bitnet": {
		name: "bitnet-b1.58", activation: "relu2",
		names: map[string]string{"self_attn.attn_sub_norm": "attn_sub_norm", "mlp.ffn_sub_norm": "ffn_sub_norm"},
	},
	"phimoe": {
		name: "phimoe", mixture: &mixture{},
		more: func(k *keys) { k.md["lutra.phimoe.authors"] = true }, // norms and router are theirs
	},
	"exaone4":          {name: "exaone4", windows: 4, names: behindNorms},
	"hunyuan_v1_dense": {name: "hunyuan-dense", names: map[string]string{"self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm"}},
	"glm4":             {name: "glm4", names: map[string]string{"post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm"}},
	"glm4_moe": {
		name: "glm4moe", names: with(postAttention, expertBias), mixture: &mixture{count: "n_routed_experts", width: "moe_intermediate_size", norm: true},
		counts: sharedCounts, numbers: scaledExperts, more: groupsOfExperts,
	},
	"ernie4_5":         {name: "ernie4_5"},
	"seed_oss":         {name: "seed_oss", names: postAttention},
	"cohere2":          {name: "cohere2", windows: 4, layerNorm: true, called: map[string]string{"norm_eps": "layer_norm_eps"}, numbers: []key{{"logit_scale", "logit_scale"}}},
	"qwen3_5_text":     {name: "qwen35", names: with(postAttention, deltaNames), layouts: deltaLayouts, plusOne: true, asStored: deltaNorm, more: qwen35Keys},
	"qwen3_5_moe_text": {name: "qwen35moe", names: with(postAttention, deltaNames), layouts: deltaLayouts, plusOne: true, asStored: deltaNorm, more: qwen35Keys, mixture: gatedExperts},
	"qwen3_next":       {name: "qwen3next", names: with(postAttention, deltaNames), layouts: groupedDeltaLayouts, plusOne: true, asStored: deltaNorm, more: deltaKeys, mixture: gatedExperts},
	"gpt_oss": {
		name: "gpt-oss", names: with(postAttention, map[string]string{
			"mlp.router": "ffn_gate_inp", "self_attn.sinks": "attn_sinks.weight", "mlp.experts.gate_up_proj_bias": "ffn_gate_up_exps.bias", "mlp.experts.down_proj_bias": "ffn_down_exps.bias",
		}), layouts: alternating, windows: 2, mixture: &mixture{width: "intermediate_size"}, more: checkClamp,
	},
	"gemma4_text": {
		name: "gemma4", activation: "gelu_pytorch_tanh", windows: 6, names: with(aroundNorms, gemma4Names), more: gemma4Keys,
		numbers: []key{{"final_logit_softcapping", "final_logit_softcapping"}}, mixture: &mixture{count: "num_experts", width: "moe_intermediate_size", optional: true},
		called: map[string]string{"num_experts_per_tok": "top_k_experts"}, defaults: map[string]any{"rms_norm_eps": 1e-6},
	},
	"granitemoe": {name: "granitemoe", paired: true, numbers: graniteNumbers, mixture: &mixture{}, names: graniteExperts},
	"granitemoehybrid": {
		name: "granitehybrid", paired: true, numbers: graniteNumbers, names: with(graniteExperts, stateSpaceNames), layouts: stateSpaceLayouts,
		mixture: &mixture{optional: true, shared: "shared_intermediate_size"}, choose: graniteOf, others: map[string]func(*architecture){"granite": nil, "granitemoe": nil}, more: graniteHybridKeys,
	},
	"bamba": {
		name: "granitehybrid", paired: true, names: preFFNames, layouts: stateSpaceLayouts, more: bambaKeys,
		defaults: map[string]any{"partial_rotary_factor": 0.5, "rms_norm_eps": 1e-5},
	},
	"mamba2": {
		name: "mamba2", names: mixerNames, layouts: stateSpaceLayouts, more: mamba2Keys,
		called:   with(mixerCalled, map[string]string{"mamba_d_state": "state_size", "mamba_n_heads": "num_heads"}),
		defaults: map[string]any{"num_attention_heads": 1, "intermediate_size": 1, "max_position_embeddings": 1 << 20, "rms_norm_eps": 1e-5, "mamba_d_state": 128, "mamba_n_groups": 8},
	},
	"falcon_h1": {
		name: "falcon-h1", names: preFFNames, layouts: with(stateSpaceLayouts, falconLayouts), more: falconKeys,
	},
	"nemotron_h": {
		name: "nemotron_h", others: map[string]func(*architecture){"nemotron_h_moe": nil}, activation: "relu2", names: nemotronNames, layouts: stateSpaceLayouts, numbers: scaledExperts,
		counts: []key{{"moe_latent_size", "moe_latent_size"}}, choose: nemotronOf, more: nemotronKeys, called: with(mixerCalled, map[string]string{
			"hidden_act": "mlp_hidden_act", "head_dim": "attention_head_dim", "mamba_d_state": "ssm_state_size", "mamba_n_heads": "mamba_num_heads",
		}), defaults: map[string]any{"rms_norm_eps": 1e-5, "head_dim": 128, "mamba_d_state": 128, "mamba_n_groups": 8, "mamba_head_dim": 64},
		mixture: &mixture{count: "n_routed_experts", width: "moe_intermediate_size", norm: true, shared: "moe_shared_expert_intermediate_size"},
	},
	"lfm2": {name: "lfm2", names: lfm2Names, called: lfm2Called, more: lfm2Keys},
	"lfm2_moe": {
		name: "lfm2moe", names: lfm2Names, called: lfm2Called, more: lfm2Keys, mixture: &mixture{width: "moe_intermediate_size", norm: true},
		counts: []key{{"leading_dense_block_count", "num_dense_layers"}}, numbers: scaledExperts,
	},
	"deepseek_v2":   {name: "deepseek2", names: latentNames, layouts: latentLayouts, mixture: routedExperts, counts: sharedCounts, numbers: scaledExperts, more: latentKeys},
	"deepseek_v3":   {name: "deepseek2", names: latentNames, layouts: latentLayouts, mixture: routedExperts, counts: sharedCounts, numbers: scaledExperts, more: latentKeys},
	"kimi_k2":       {name: "deepseek2", names: latentNames, layouts: latentLayouts, mixture: routedExperts, counts: sharedCounts, numbers: scaledExperts, more: latentKeys},
	"glm4_moe_lite": {name: "deepseek2", names: latentNames, layouts: latentLayouts, mixture: routedExperts, counts: sharedCounts, numbers: scaledExperts, more: latentKeys},
	"ministral3":    {name: "mistral3", paired: true, more: temperKeys},
	"gemma": {
		name: "gemma", activation: "gelu_pytorch_tanh", plusOne: true,
		defaults: map[string]any{"head_dim": 256, "max_position_embeddings": 8192, "rms_norm_eps": 1e-6},
	},
	"cohere": {name: "command-r", layerNorm: true, called: map[string]string{"norm_eps": "layer_norm_eps"}, numbers: []key{{"logit_scale", "logit_scale"}}},
	"dots1":  {name: "dots1", names: expertBias, mixture: routedExperts, counts: sharedCounts, numbers: scaledExperts, more: groupsOfExperts},
	"ernie4_5_moe": {
		name: "ernie4_5-moe", names: map[string]string{"mlp.moe_statics.e_score_correction_bias": "exp_probs_b.bias", "mlp.gate.moe_statics.e_score_correction_bias": "exp_probs_b.bias"},
		layouts: map[string]layout{"exp_probs_b.bias": flat}, mixture: &mixture{count: "moe_num_experts", width: "moe_intermediate_size"},
		called: map[string]string{"num_experts_per_tok": "moe_k"}, counts: []key{{"expert_shared_count", "moe_num_shared_experts"}, {"leading_dense_block_count", "moe_layer_start_index"}},
		more: checkErnie,
	},
	"hunyuan_v1_moe": {
		name: "hunyuan-moe", names: map[string]string{
			"self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm", "mlp.gate.wg": "ffn_gate_inp",
			"mlp.shared_mlp.gate_proj": "ffn_gate_shexp", "mlp.shared_mlp.up_proj": "ffn_up_shexp", "mlp.shared_mlp.down_proj": "ffn_down_shexp",
		}, mixture: &mixture{width: "moe_intermediate_size", shared: "intermediate_size"}, choose: hunyuanOf, more: checkHunyuan,
	},
	"bailing_moe_v2": {
		name: "bailingmoe2", names: map[string]string{
			"attention.query_key_value": "attn_qkv", "attention.dense": "attn_output", "attention.query_layernorm": "attn_q_norm", "attention.key_layernorm": "attn_k_norm",
			"mlp.gate.expert_bias": "exp_probs_b.bias",
		}, mixture: &mixture{width: "moe_intermediate_size", norm: true}, counts: countedExperts, numbers: scaledExperts, more: bailingKeys,
		defaults: map[string]any{"partial_rotary_factor": 0.5},
	},
	"exaone_moe": {
		name: "exaone-moe", names: expertBias, windows: 4, mixture: &mixture{width: "moe_intermediate_size", norm: true}, counts: countedExperts, numbers: scaledExperts,
		called: map[string]string{"first_k_dense_replace": "first_last_k_dense_replace"}, more: exaoneKeys,
	},
	"minimax_m2": {
		name: "minimax-m2", names: expertBias, mixture: &mixture{width: "intermediate_size"}, more: miniMaxKeys,
	},
	"muse_glimmer_text": {
		name: "muse-glimmer", paired: true, plusOne: true, asStored: []string{"output_norm.weight"}, windows: 4, names: with(aroundNorms, map[string]string{"self_attn.gate_proj": "attn_gate"}),
		numbers: []key{{"final_logit_softcapping", "final_logit_softcapping"}, {"logit_scale", "output_multiplier"}}, more: museKeys,
	},
	"maple":   {name: "maple", windows: 4, mixture: &mixture{width: "moe_intermediate_size", norm: true, sameAsEveryone: true}, more: mapleKeys},
	"minicpm": {name: "minicpm", paired: true, numbers: []key{{"embedding_scale", "scale_emb"}}, more: miniCPMKeys},
	"internlm2": {
		name: "internlm2", paired: true, layouts: map[string]layout{"attn_qkv.weight": groupedHeads}, names: map[string]string{
			"attention_norm": "attn_norm", "ffn_norm": "ffn_norm", "attention.wqkv": "attn_qkv", "attention.wo": "attn_output",
			"feed_forward.w1": "ffn_gate", "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down",
		},
	},
	"starcoder2": {
		name: "starcoder2", activation: "gelu_pytorch_tanh", layerNorm: true, called: map[string]string{"norm_eps": "norm_epsilon"},
		names: map[string]string{"mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}, more: onlyFlags(true, "use_bias"),
	},
	"phi": {
		name: "phi2", activation: "gelu_new", layerNorm: true, called: normEps, names: map[string]string{"self_attn.dense": "attn_output", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down"},
		defaults: map[string]any{"partial_rotary_factor": 0.5}, more: onlyFlags(false, "qk_layernorm"),
	},
	"stablelm": {
		name: "stablelm", layerNorm: true, called: normEps, defaults: map[string]any{"partial_rotary_factor": 0.25}, more: onlyFlags(false, "qk_layernorm", "use_parallel_residual"),
	},
	"nemotron": {name: "nemotron", activation: "relu2", layerNorm: true, plusOne: true, defaults: map[string]any{"partial_rotary_factor": 0.5}},
	"arcee":    {name: "arcee", paired: true, activation: "relu2"},

	"eurobert":      {name: "eurobert", encoder: true},
	"llama_bidirec": {name: "llama-embed", encoder: true, paired: true},
	"bert":          bertModel,
	"roberta":       robertaModel,
	"xlm-roberta":   robertaModel,
	"camembert":     robertaModel,
	"nomic_bert": {
		name: "nomic-bert", encoder: true, layerNorm: true, activation: "silu", called: with(normEps, map[string]string{
			"hidden_size": "n_embd", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer", "intermediate_size": "n_inner", "max_position_embeddings": "n_positions",
			"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_emb_fraction",
		}), names: map[string]string{
			"attn.Wqkv": "attn_qkv", "attn.out_proj": "attn_output", "mlp.fc11": "ffn_up", "mlp.fc12": "ffn_gate", "mlp.fc2": "ffn_down",
			"norm1": "attn_output_norm", "norm2": "layer_output_norm",
		}, defaults: map[string]any{"rope_theta": 1000}, more: nomicKeys,
	},
	"modernbert": {
		name: "modern-bert", encoder: true, layerNorm: true, activation: "gelu", called: map[string]string{"sliding_window": "local_attention", "sliding_window_pattern": "global_attn_every_n_layers", "rope_theta": "global_rope_theta", "rope_local_base_freq": "local_rope_theta"},
		names:    map[string]string{"attn.Wqkv": "attn_qkv", "attn.Wo": "attn_output", "mlp.Wi": "ffn_up", "mlp.Wo": "ffn_down", "attn_norm": "attn_norm", "mlp_norm": "ffn_norm"},
		defaults: map[string]any{"norm_eps": 1e-5}, windows: 3, first: true, more: modernKeys,
	},
}

// normEps maps LayerNorm's epsilon to the encoders' name for it.
var normEps = map[string]string{"norm_eps": "layer_norm_eps"}

// bertModel is BERT, robertaModel that with positions that begin behind the padding's.
var (
	bertModel = architecture{
		name: "bert", encoder: true, layerNorm: true, activation: "gelu", called: normEps, names: map[string]string{
			"attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v", "attention.output.dense": "attn_output",
			"attention.output.LayerNorm": "attn_output_norm", "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm",
			"mlp.gated_layers": "ffn_up", "mlp.wo": "ffn_down", "mlp.layernorm": "layer_output_norm", // of Jina
		}, choose: jinaOf, others: map[string]func(*architecture){"jina-bert-v2": nil}, more: bertKeys,
	}
	robertaModel = func() architecture {
		a := bertModel
		a.layouts = map[string]layout{"position_embd.weight": behindPadding}
		a.choose, a.others, a.more = nil, nil, robertaKeys
		return a
	}()
)
