package api

// What requests and answers of all APIs have of Lutra's own.
const (
	ScalingField   = "test_time_scaling" // in the body, and within its metadata
	ScalingHeader  = "X-Lutra-Scaling"
	ScalingApplied = "X-Lutra-Scaling-Applied" // the answer's header that says what was done
	Warning        = "X-Lutra-Warning"         // the answer's header that says what it is not held to
)
