// Package output prints for people and scripts: tables, JSON, progress, sizes,
// and text from outside without control characters.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// JSON prints v indented, as scripts and people read it.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Line prints v on one line, as files of many numbers have it.
func Line(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// Table prints aligned columns; the first row is the head.
func Table(w io.Writer, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	return tw.Flush()
}

// bar returns a bar on a terminal. It prints nothing on a narrow one.
func bar(w io.Writer, n int, what string) *progressbar.ProgressBar {
	const around = 50 // columns for the words next to the bar
	columns := columns(w)
	return progressbar.NewOptions(n,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetVisibility(columns > around),
		progressbar.OptionSetWidth(min(40, columns-around)),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
}

// ByteProgress returns a bar of bytes.
func ByteProgress(w io.Writer, n int64, what string) *progressbar.ProgressBar {
	const around = 80 // columns for the words, amounts and times next to the bar
	columns := columns(w)
	return progressbar.NewOptions64(n,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetVisibility(columns > 0),
		progressbar.OptionSetWidth(max(10, min(40, columns-around))),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowCount(),
		progressbar.OptionUseIECUnits(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
}

// IsTerminal reports whether w, an output or an input, is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// columns returns the width of a terminal, 0 if w is not one.
func columns(w any) int {
	if !IsTerminal(w) {
		return 0
	}
	n, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return n
}

// Styled reports whether w is a terminal whose user wants colours and other styles.
func Styled(w any) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Bytes prints a number of bytes in binary units.
func Bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
