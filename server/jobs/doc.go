// Package jobs answers requests that nobody waits for: files of them by OpenAI's API (/v1/files, /v1/batches)
// and lists of them by Anthropic's (/v1/messages/batches). Each line is a request of a route of the server,
// which its handler answers in the background lanes of the engines.
//
//	input ──line──▶ Run ──http.Request──▶ handler ──answer──▶ journal ──all answered──▶ output, errors
//
// A folder keeps them:
//
//	files/ID, files/ID.json         a file and its record
//	batches/ID.json                 a batch's record
//	batches/ID.lines                where its lines stand in the input
//	batches/ID.journal              answers so far, each a line with its checksum, written to the disk
//	lock                            held by the server whose folder it is
//
// A line is answered once its record is in the journal; a server that has been killed does the others again.
// What is damaged costs the line or the file that it belongs to, never the start.
package jobs
