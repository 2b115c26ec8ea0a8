package terminal

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mattn/go-runewidth"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/lib/textwrap"
)

// Table aligns cells that end with a tab, as [tabwriter.Writer] does, and keeps
// to a number of columns: cells that don't fit are wrapped within their column.
// Control characters are written as escapes: cells have what engines and workers say. It
// writes on Flush.
type Table struct {
	out   io.Writer
	width int // 0: no limit
	text  bytes.Buffer
}

// NewTable writes to out, at most width columns; 0 means no limit.
func NewTable(out io.Writer, width int) *Table { return &Table{out: out, width: width} }

const (
	wideGap   = 3 // blanks between columns
	narrowGap = 2 // where there is little room
	minCell   = 8 // how narrow a column is made
)

// Write implements [io.Writer].
func (t *Table) Write(b []byte) (int, error) { return t.text.Write(b) }

// Flush writes what was collected.
func (t *Table) Flush() error {
	text := app.PrintableLines(t.text.String())
	t.text.Reset()
	if t.width > 0 {
		text = fitTable(text, t.width)
	} else {
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, wideGap, ' ', 0)
		_, _ = io.WriteString(w, text) // a builder takes everything
		_ = w.Flush()
		text = b.String()
	}
	_, err := io.WriteString(t.out, text)
	return err
}

// fitTable lays out blocks of lines that have tabs, and wraps the others.
func fitTable(text string, width int) string {
	var out strings.Builder
	var block [][]string
	flush := func() {
		writeBlock(&out, block, width)
		block = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if cells := strings.Split(line, "\t"); len(cells) > 1 {
			block = append(block, cells)
			continue
		}
		flush()
		out.WriteString(textwrap.Lines(line, width, 2) + "\n")
	}
	flush()
	return out.String()
}

func writeBlock(out *strings.Builder, rows [][]string, width int) {
	widths, gap := columnWidths(rows, width)
	for _, row := range rows {
		parts := make([][]string, len(row))
		height := 1
		for i, cell := range row {
			parts[i] = cellLines(cell, widths[i])
			height = max(height, len(parts[i]))
		}
		for n := range height {
			var line strings.Builder
			for i := range row {
				text := ""
				if n < len(parts[i]) {
					text = parts[i][n]
				}
				line.WriteString(text + strings.Repeat(" ", max(0, widths[i]-runewidth.StringWidth(text))+gap))
			}
			out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
	}
}

// columnWidths are those of the widest cells. Where that is too wide, the columns
// move together and the widest column shrinks first: to its longest word, and only
// then further.
func columnWidths(rows [][]string, width int) (widths []int, gap int) {
	var longest []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths, longest = append(widths, 0), append(longest, minCell)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
			for word := range strings.FieldsSeq(cell) {
				longest[i] = max(longest[i], len(indentOf(cell))+runewidth.StringWidth(word))
			}
		}
	}
	total := 0
	for _, w := range widths {
		total += w
	}
	if total+wideGap*(len(widths)-1) <= width {
		return widths, wideGap
	}
	room := width - narrowGap*(len(widths)-1)
	for _, least := range [][]int{longest, slices.Repeat([]int{minCell}, len(widths))} {
		for ; total > room; total-- {
			widest := -1
			for i, w := range widths {
				if w > least[i] && (widest < 0 || w > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
		}
	}
	return widths, narrowGap
}

// indentOf is the blanks that a cell begins with.
func indentOf(cell string) string { return cell[:len(cell)-len(strings.TrimLeft(cell, " "))] }

// cellLines breaks a cell at blanks, and within a word that is too long. What goes on
// has the indent of the cell.
func cellLines(cell string, width int) []string {
	var out []string
	indent := indentOf(cell)
	for line := range strings.SplitSeq(textwrap.Lines(cell, width, 0), "\n") {
		for runewidth.StringWidth(line) > width {
			head := runewidth.Truncate(line, width, "")
			if len(head) <= len(indent) {
				break
			}
			out = append(out, head)
			line = indent + line[len(head):]
		}
		out = append(out, line)
	}
	return out
}
