// Package embed makes vectors of texts and scores how well documents answer queries,
// with models that write nothing.
package embed
