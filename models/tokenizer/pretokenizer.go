package tokenizer

import "unicode"

// preTokenizer says how byte-level BPE cuts text into words before merging.
type preTokenizer struct {
	// stages are applied one after the other: each cuts the pieces that the
	// one before left into its matches and what lies between them.
	stages     []splitter
	wholeWords bool // a word that is a token is not built up by merges
	addBOS     bool // BOS is added unless the file says no
	nfc        bool // the model's own tokenizer composes characters first, see nfc.go
}

// The patterns, as the model families' own tokenizer definitions give them.
// None needs more than linear time: where a run can fail to match at its end,
// no later start in the same run is tried.
const (
	contractions = `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`
	gpt2Words    = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llama3Words  = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Words   = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen35Words  = contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	seedWords    = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`
	bailingWords = `'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`

	upper       = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	lower       = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	tekkenWords = `[^\r\n\p{L}\p{N}]?` + upper + `*` + lower + `+|[^\r\n\p{L}\p{N}]?` + upper + `+` + lower +
		`*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	gpt4oWords = `[^\r\n\p{L}\p{N}]?` + upper + `*` + lower + `+` + contractions + `?|[^\r\n\p{L}\p{N}]?` + upper + `+` + lower +
		`*` + contractions + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	deepseekLetters = `\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1F7Dᾀ-ᾴᾶ-ᾼ\u1FBEῂ-ῄῆ-ῌῐ-\u1FD3ῖ-\u1FDBῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212A-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+`
	deepseekPunct   = `\s?[!-/:-~！-／：-～‘-‟　-。]+`
	deepseekHan     = `[一-龥ࠀ-一가-퟿]+`
	deepseekV3Words = `[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" + `{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	bloomWords      = ` ?[^(\s|.,!?…。，、।۔،)]+`

	// Letters and marks but no Han, whose runs are words of their own.
	upperNoHan = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}-[\p{Han}]]`
	lowerNoHan = `[\p{Ll}\p{Lm}\p{Lo}\p{M}-[\p{Han}]]`
	kimiWords  = `\p{Han}+|[^\r\n\p{L}\p{N}]?` + upperNoHan + `*` + lowerNoHan + `+` + contractions + `?|[^\r\n\p{L}\p{N}]?` + upperNoHan + `+` +
		lowerNoHan + `*` + contractions + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	youtuScripts = `[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+`
	youtuWords   = `[^\r\n\p{L}\p{N}]?` + upper + `*` + lower + `+` + contractions + `?|[^\r\n\p{L}\p{N}]?` + upper + `+` + lower +
		`*` + contractions + `?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// White space in runs of powers of two, so far as nothing else follows.
	jais2Words = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|` +
		`\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s`
	exaoneMoEWords = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}\p{M}*(?: ?\p{L}\p{M}*)*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`
	ufakzekaWords  = `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	sparkWords     = `[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" + `{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+`
	afmoeScripts   = `[一-鿿㐀-䶿豈-\uFAFF぀-ゟ゠-ヿ･-ﾟ⼀-\u2FDF\u0E40-\u0E7F\u0E80-\u0EFF\u1780-\u17FF\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF\uAC00-\uD7AF\u1100-\u11FF]+`
)

// The stages that several families share.
var (
	gpt2     = []splitter{scanner(nextGPT2)}
	llama3   = []splitter{scanner(nextLlama3)}
	qwen2    = []splitter{scanner(nextQwen2)}
	digits   = []splitter{pattern(`\p{N}`), scanner(nextGPT2)}
	original = []splitter{pattern(`[\p{P}\$\+<=>\^~\|]+`), scanner(nextGPT2), pattern(`\p{N}+`), pattern(`[0-9][0-9][0-9]`)}
	falcon   = []splitter{pattern("[\\p{P}\\$\\+<=>\\^~\\|`]+"), scanner(nextGPT2), pattern(`[0-9][0-9][0-9]`)}
	gpt4o    = []splitter{pattern(gpt4oWords)}
	bloom    = []splitter{pattern(bloomWords)}
	// A run of white space that does not end the text is tried only at its
	// first character.
	deepseekLLM = []splitter{pattern(`[\r\n]`), pattern(deepseekLetters), pattern(deepseekPunct),
		pattern(`(?<!\s)\s+$`), pattern(deepseekHan), pattern(`\p{N}+`)}
	deepseekCoder = []splitter{pattern(`[\r\n]`), pattern(`\s?\p{L}+`), pattern(`\s?\p{P}+`), pattern(deepseekHan), pattern(`\p{N}`)}
	deepseekV3    = []splitter{pattern(`\p{N}{1,3}`), pattern(`[一-龥぀-ゟ゠-ヿ]+`), pattern(deepseekV3Words)}
	aya           = []splitter{thousands{digit: unicode.IsDigit, bounded: true}, pattern(gpt4oWords)}
	chameleon     = []splitter{pattern(`<sentinel:[0-9]+>`), pattern(`IMGIMG[A-I]{1,4}Z`), pattern(`[\t\n]|    |  `), pattern(`\p{N}`),
		pattern("[\\p{P}!-/:-@\\[-`{-~]"), scanner(nextGPT2)}
)

// preTokenizers is keyed by tokenizer.ggml.pre. Of llama.cpp's names it lacks granite-embed-multi-311m, sarvam-moe
// and whitespace, whose merges are of characters and not of bytes. gemma4 is a tokenizer.ggml.model of its own, see
// charbpe.go.
var preTokenizers = map[string]preTokenizer{
	"default": {stages: original},

	"gpt-2":           {stages: gpt2},
	"phi-2":           {stages: gpt2},
	"mpt":             {stages: gpt2, nfc: true}, // GPT-NeoX's
	"olmo":            {stages: gpt2, nfc: true}, // GPT-NeoX's
	"jais":            {stages: gpt2},
	"gigachat":        {stages: gpt2},
	"mellum":          {stages: gpt2},
	"modern-bert":     {stages: gpt2, nfc: true},
	"roberta-bpe":     {stages: gpt2},
	"jina-es":         {stages: gpt2},
	"jina-de":         {stages: gpt2},
	"jina-v1-en":      {stages: gpt2},
	"jina-v2-es":      {stages: gpt2},
	"jina-v2-de":      {stages: gpt2},
	"jina-v2-code":    {stages: gpt2},
	"a.x-4.0":         {stages: gpt2},
	"exaone4":         {stages: gpt2},
	"trillion":        {stages: gpt2},
	"granite-docling": {stages: gpt2},

	"llama3":    {stages: llama3, wholeWords: true, addBOS: true},
	"llama-v3":  {stages: llama3, wholeWords: true, addBOS: true},
	"llama-bpe": {stages: llama3, wholeWords: true, addBOS: true},
	"falcon3":   {stages: llama3, wholeWords: true, addBOS: true},
	"falcon-h1": {stages: llama3, wholeWords: true, addBOS: true},
	"pixtral":   {stages: llama3, wholeWords: true, addBOS: true},
	"midm-2.0":  {stages: llama3, wholeWords: true, addBOS: true},
	"lfm2":      {stages: llama3, wholeWords: true, addBOS: true},
	// As the converter of Falcon-E's authors names falcon3's rules.
	"falcon_e":     {stages: llama3, wholeWords: true, addBOS: true},
	"jina-v5-nano": {stages: llama3, wholeWords: true, addBOS: true},
	"minicpm5":     {stages: []splitter{pattern(`\p{N}{1,3}`), scanner(nextLlama3)}, wholeWords: true},
	"dbrx":         {stages: llama3},
	"smaug-bpe":    {stages: llama3},
	"glm4":         {stages: llama3},

	"chatglm-bpe":      {stages: llama3},
	"qwen2":            {stages: qwen2, nfc: true},
	"f2llmv2":          {stages: qwen2, nfc: true}, // Qwen3's
	"kormo":            {stages: qwen2},
	"deepseek-r1-qwen": {stages: qwen2},
	"megrez":           {stages: qwen2},
	"stablelm2":        {stages: qwen2},
	"hunyuan":          {stages: qwen2},
	"solar-open":       {stages: qwen2},
	"grok-2":           {stages: qwen2},
	"laguna":           {stages: []splitter{pattern(`[^\n]+|\n+`), scanner(nextQwen2)}},
	"ufakzeka":         {stages: []splitter{pattern(ufakzekaWords)}},
	"qwen35":           {stages: []splitter{pattern(qwen35Words)}, nfc: true},
	"seed-coder":       {stages: []splitter{pattern(seedWords)}},
	"bailingmoe":       {stages: []splitter{pattern(bailingWords)}},
	"bailingmoe2":      {stages: []splitter{pattern(bailingWords)}},
	"llada-moe":        {stages: []splitter{pattern(bailingWords)}},

	"starcoder":  {stages: digits},
	"refact":     {stages: digits},
	"command-r":  {stages: digits, nfc: true},
	"smollm":     {stages: digits},
	"codeshell":  {stages: digits},
	"exaone":     {stages: digits},
	"minerva-7b": {stages: digits},
	"mellum2":    {stages: digits},

	"falcon":         {stages: falcon},
	"deepseek-llm":   {stages: deepseekLLM},
	"deepseek-coder": {stages: deepseekCoder},
	"deepseek-v3":    {stages: deepseekV3},
	"hunyuan-dense":  {stages: deepseekV3},
	"joyai-llm":      {stages: deepseekV3},
	"hy_v4":          {stages: deepseekV3},
	"spark2_5":       {stages: []splitter{pattern(`\p{N}{1,3}`), pattern(`[一-龥぀-ゟ゠-ヿ]+`), pattern(sparkWords), pattern(`\p{N}`)}},
	"afmoe":          {stages: []splitter{thousands{digit: unicode.IsNumber}, pattern(afmoeScripts), pattern(deepseekV3Words)}},

	"tekken":     {stages: []splitter{pattern(tekkenWords)}, wholeWords: true, addBOS: true},
	"gpt-4o":     {stages: gpt4o},
	"llama4":     {stages: gpt4o},
	"kanana2":    {stages: gpt4o},
	"minimax-m2": {stages: gpt4o},
	"talkie":     {stages: gpt4o},

	"granite-embed-multi-97m": {stages: gpt4o, wholeWords: true},
	"tiny_aya":                {stages: aya, nfc: true},
	"cohere2moe":              {stages: aya, nfc: true},
	"kimi-k2":                 {stages: []splitter{pattern(kimiWords)}},
	"youtu":                   {stages: []splitter{pattern(youtuScripts), pattern(youtuWords)}, wholeWords: true},
	"jais-2":                  {stages: []splitter{pattern(jais2Words)}},
	"exaone-moe":              {stages: []splitter{pattern(exaoneMoEWords)}},
	"superbpe":                {stages: []splitter{pattern(`\p{N}+`), thousands{digit: unicode.IsDigit, ahead: true}}},
	"chameleon":               {stages: chameleon, addBOS: true},

	"bloom":        {stages: bloom},
	"poro-chat":    {stages: bloom},
	"gpt3-finnish": {stages: bloom},
	"viking":       {stages: []splitter{pattern(bloomWords), pattern(`\p{N}`)}},
}
