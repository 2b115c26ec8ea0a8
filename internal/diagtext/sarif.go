package diagtext

import (
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
)

// SARIF 2.1.0, OASIS Standard: only the properties that we fill.
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID           string          `json:"ruleId"`
		RuleIndex        int             `json:"ruleIndex"`
		Level            string          `json:"level"`
		Message          sarifMessage    `json:"message"`
		Locations        []sarifLocation `json:"locations,omitempty"`
		RelatedLocations []sarifLocation `json:"relatedLocations,omitempty"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysical `json:"physicalLocation"`
		Message          *sarifMessage `json:"message,omitempty"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
		EndLine     int `json:"endLine,omitempty"`
		EndColumn   int `json:"endColumn,omitempty"`
	}
)

// SARIF writes a SARIF 2.1.0 log with one run. Columns count Unicode code
// points. A code that is empty is reported as "workshop".
func SARIF(w io.Writer, l diag.List) error {
	codes := make([]string, 0, len(l))
	for _, d := range l {
		codes = append(codes, ruleID(d))
	}
	slices.Sort(codes)
	codes = slices.Compact(codes)
	rules := make([]sarifRule, len(codes))
	for i, c := range codes {
		rules[i] = sarifRule{ID: c}
	}
	results := make([]sarifResult, 0, len(l))
	for _, d := range l {
		index, _ := slices.BinarySearch(codes, ruleID(d))
		r := sarifResult{
			RuleID: ruleID(d), RuleIndex: index, Level: d.Severity.String(),
			Message: sarifMessage{message(d)},
		}
		if d.Range.Filename != "" {
			r.Locations = []sarifLocation{location(d.Range, "")}
		}
		for _, rel := range d.Related {
			if rel.Range.Filename != "" {
				r.RelatedLocations = append(r.RelatedLocations, location(rel.Range, rel.Message))
			}
		}
		results = append(results, r)
	}
	return encode(w, sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs: []sarifRun{{
			Tool: sarifTool{sarifDriver{
				Name: "workshop", InformationURI: "https://github.com/llmdo/workshop", Rules: rules,
			}},
			ColumnKind: "unicodeCodePoints",
			Results:    results,
		}},
	})
}

func ruleID(d diag.Diagnostic) string {
	if d.Code == "" {
		return "workshop"
	}
	return d.Code
}

// message joins what a reader needs where there is only one text.
func message(d diag.Diagnostic) string {
	parts := []string{d.Summary}
	if d.Detail != "" {
		parts = append(parts, d.Detail)
	}
	if d.Hint != "" {
		parts = append(parts, "hint: "+d.Hint)
	}
	return strings.Join(parts, "\n")
}

func location(r diag.Range, msg string) sarifLocation {
	// A relative reference as RFC 3986 §4.2 wants it: a first segment with a
	// colon needs "./", which url.URL adds.
	u := url.URL{Path: path.Clean(r.Filename)}
	loc := sarifLocation{PhysicalLocation: sarifPhysical{ArtifactLocation: sarifArtifact{URI: u.String()}}}
	if r.Start.Line > 0 {
		region := &sarifRegion{StartLine: r.Start.Line, StartColumn: max(1, r.Start.Column)}
		if r.End.Line >= r.Start.Line && r.End.Column > 0 {
			region.EndLine, region.EndColumn = r.End.Line, r.End.Column
		}
		loc.PhysicalLocation.Region = region
	}
	if msg != "" {
		loc.Message = &sarifMessage{msg}
	}
	return loc
}
