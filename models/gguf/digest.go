package gguf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// digestPiece is the number of bytes that Digest hashes in one turn: about a millisecond's
// work.
const digestPiece = 1 << 20

// Digest returns the SHA-256 of the file's bytes in hexadecimal, as sha256sum prints it; for a
// model in parts, the SHA-256 of all parts one after the other. It reads the file that was
// opened, whatever has its name by now, and fails if that was written to since. It calls turn
// before it hashes a piece, and the function that turn has returned after that: no piece is
// read in between. An error of turn ends the reading.
func (f *File) Digest(turn func() (end func(), err error)) (string, error) {
	h := sha256.New()
	piece := make([]byte, digestPiece)
	for _, s := range f.files {
		r := io.NewSectionReader(s, 0, s.Size())
		for at := int64(0); at < s.Size(); at += digestPiece {
			n := min(digestPiece, s.Size()-at)
			if _, err := io.ReadFull(r, piece[:n]); err != nil {
				return "", fmt.Errorf("gguf: %w", err)
			}
			end, err := turn()
			if err != nil {
				return "", err
			}
			h.Write(piece[:n])
			end()
		}
	}
	if err := f.Unchanged(); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// State is a text that is the same as of another File only if Digest is, and that costs no reading: disk.Source.State of each
// part. It is empty where nothing tells.
func (f *File) State() string {
	var parts []string
	for _, s := range f.files {
		state := s.State()
		if state == "" {
			return ""
		}
		parts = append(parts, state)
	}
	return strings.Join(parts, "\x00\x00")
}

// Bounds of what Sketch reads of a file.
const (
	sketchHead    = 1 << 20
	sketchSamples = 64
	sketchSample  = 4 << 10
)

// Sketch tells files apart that were made apart, and costs no more for a large one. It is a hash of sizes, of the
// beginning, and of 64 samples of 4 KiB from all over the file. Digest compares all bytes.
func (f *File) Sketch() (string, error) {
	h := sha256.New()
	buf := make([]byte, sketchHead)
	for _, s := range f.files {
		fmt.Fprintf(h, "%d\n", s.Size())
		head := min(sketchHead, s.Size())
		if err := s.Read(buf[:head], 0); err != nil {
			return "", err
		}
		h.Write(buf[:head])
		rest := s.Size() - head
		for i := range min(sketchSamples, rest) {
			at := head + rest/sketchSamples*i
			n := min(sketchSample, s.Size()-at)
			if err := s.Read(buf[:n], at); err != nil {
				return "", err
			}
			h.Write(buf[:n])
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
