package scaling

import "slices"

// DeepConf says which answers the method of the same name trusts (Fu et al. 2025, "Deep Think with
// Confidence", §3). A token's confidence is the mean negative log-probability of the likeliest ones in its
// place, in nats; a group's is the mean over a window of tokens.
type DeepConf struct {
	Warmup int     // candidates that set the threshold and are written to their end; 0: a fifth of N, 3 to 16
	Eta    float64 // percentage of them, the most confident, that pass it; 0: 90
	Window int     // tokens of a group; 0: a quarter of a mean warm-up answer, 2048 at most
	TopK   int     // likeliest tokens; 0: 20
	Weight Measure // a vote's; "": MeasureLowest
	Tau    float64 // share of the votes' weight that ends the search; 0: 0.95
}

// Measure makes one confidence of a candidate's tokens.
type Measure string

// The measures. An answer shorter than the window is one group.
const (
	MeasureLowest Measure = "lowest" // the lowest group
	MeasureBottom Measure = "bottom" // mean of the lowest tenth of the groups
	MeasureTail   Measure = "tail"   // the last group
	MeasureMean   Measure = "mean"   // all tokens
)

// Particles says how particles are drawn after each solution step, and how often all begin anew.
type Particles struct {
	Resampling  Resampling // "": Multinomial
	Temperature float64    // of the softmax of their log-weights; 0: 1
	// Iterations share the N particles; more than one are particle Gibbs (Puri et al. 2025, §3.3). 0: 1.
	Iterations int
	// References counts the particles of an iteration that take part in the next; 0: 1, or none with one iteration.
	References int
}

// Resampling is a way to draw as many particles as there are by their weights.
type Resampling string

// The ways.
const (
	Multinomial Resampling = "multinomial" // each by itself
	Systematic  Resampling = "systematic"  // at equal distances, from one random number
)

// The bounds of methods' settings.
const (
	mostStepCost = 16
	leastCost    = 1e-6
	mostCost     = 1e6
)

// withMethodDefaults fills the settings of the plan's method.
func (p *Plan) withMethodDefaults() {
	if d := &p.DeepConf; p.Method == DeepConfidence {
		if p.N > 0 {
			set(&d.Warmup, min(16, max(3, p.N/5), p.N))
		}
		set(&d.Eta, 90)
		set(&d.TopK, 20)
		set(&d.Weight, MeasureLowest)
		set(&d.Tau, 0.95)
	}
	if a := &p.Adaptive; a.On {
		if p.N > 0 {
			set(&a.First, min(3, p.N))
		}
		set(&a.Threshold, 0.95)
		set(&a.Price, 0.01)
		if a.StepCost == nil {
			a.StepCost = DefaultStepCost()
		}
	}
	if p.Method == ParticleFiltering {
		set(&p.Particles.Resampling, Multinomial)
		set(&p.Particles.Temperature, 1)
		if set(&p.Particles.Iterations, 1); p.Particles.Iterations > 1 {
			set(&p.Particles.References, 1)
		}
	}
}

func set[T comparable](v *T, def T) {
	var unset T
	if *v == unset {
		*v = def
	}
}

// validateMethod checks the settings of single methods, of a plan that has its defaults.
func (p *Plan) validateMethod() error {
	d, a := &p.DeepConf, &p.Adaptive
	if len(a.StepCost) > mostStepCost {
		return Errorf(CodeValue, "adaptive.step_cost", "at most %d numbers are allowed", mostStepCost)
	}
	for i, c := range a.StepCost {
		if !(c >= leastCost && c <= mostCost) || i > 0 && c < a.StepCost[i-1] {
			return Errorf(CodeValue, "adaptive.step_cost", "%v is not between %v and %v, or less than the cost of fewer rows", c, leastCost, mostCost)
		}
	}
	switch {
	case a.On && !slices.Contains([]Method{SelfConsistency, BestOfN}, p.Method):
		return Errorf(CodeValue, "adaptive", "only self_consistency and best_of_n buy candidates in rounds, not %s", p.Method)
	case p.Method == DeepConfidence && p.N > 0 && d.Warmup > p.N:
		return Errorf(CodeValue, "deepconf.warmup", "%d is more than the %d candidates", d.Warmup, p.N)
	case p.Method == DeepConfidence && p.Verifier != "":
		return Errorf(CodeValue, "verifier", "deepconf judges by the tokens' own probabilities; leave it out")
	case p.Method == ParticleFiltering:
		return p.validateIterations()
	}
	return nil
}

// validateIterations checks how iterations share the particles.
func (p *Plan) validateIterations() error {
	set := &p.Particles
	switch each := p.N / set.Iterations; {
	case set.Iterations == 1 && set.References > 0:
		return Errorf(CodeValue, "particles.references", "one iteration has no next one for them; set particles.iterations")
	case set.Iterations == 1:
		return nil
	case p.N == AutoN:
		return Errorf(CodeValue, "n", "auto cannot be shared by %d iterations", set.Iterations)
	case p.N%set.Iterations != 0:
		return Errorf(CodeNotDivisible, "n", "%d is not divisible by the %d iterations", p.N, set.Iterations)
	case set.References >= each:
		return Errorf(CodeValue, "particles.references", "%d leave none of the %d particles of an iteration free", set.References, each)
	}
	return nil
}
