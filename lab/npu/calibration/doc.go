// Package calibration counts what the routers of a mixture choose on data sets, for plans that others make of it:
//
//	Counter (what the router chose) ──▶ Calibration ──▶ experts.Plan
//
// Calibrations are JSON files, which may be anybody's: Read checks all of them.
package calibration
