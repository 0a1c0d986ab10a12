// Package scaling says how one request wants to be searched: its Plan, read from
// JSON or from a line of text, with its defaults and bounds.
//
// It knows no models and no engines. Package tts carries plans out.
package scaling
