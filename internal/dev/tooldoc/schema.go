package tooldoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// schema is what a list shows of a JSON Schema.
type schema struct {
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Minimum     *float64        `json:"minimum"`
	Maximum     *float64        `json:"maximum"`
	MaxLength   int             `json:"maxLength"`
	MaxItems    int             `json:"maxItems"`
	Items       *schema         `json:"items"`
	Required    []string        `json:"required"`
	Additional  json.RawMessage `json:"additionalProperties"`
	Properties  properties      `json:"properties"`
}

// properties keep the order in which they are written.
type properties struct {
	names []string
	of    map[string]*schema
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *properties) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &p.of); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil { // {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		p.names = append(p.names, name.(string))
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return err
		}
	}
	return nil
}

// row is an entry of a list.
type row struct {
	name string
	*schema
	required bool
}

// rows lists the properties of an object.
func (s *schema) rows() (out []row) {
	for _, name := range s.Properties.names {
		out = append(out, row{name, s.Properties.of[name], slices.Contains(s.Required, name)})
	}
	return out
}

// kind is the type in words.
func (s *schema) kind() string {
	switch {
	case s.Type == "array" && s.Items != nil:
		return "list of " + s.Items.kind()
	case s.Type == "object" && len(s.Properties.names) == 0 && len(s.Additional) > 0 && s.Additional[0] == '{':
		var of schema
		if json.Unmarshal(s.Additional, &of) == nil {
			return "map of " + of.kind()
		}
	}
	return s.Type
}

// limit is what a value keeps to.
func (s *schema) limit() string {
	var out []string
	if s.Maximum != nil {
		out = append(out, "at most "+number(*s.Maximum))
	}
	if s.MaxLength > 0 {
		out = append(out, "at most "+number(float64(s.MaxLength))+" characters")
	}
	if s.MaxItems > 0 {
		out = append(out, "at most "+number(float64(s.MaxItems)))
	}
	return strings.Join(out, "; ")
}

// standard is the default.
func (s *schema) standard() string {
	n, err := strconv.ParseFloat(string(s.Default), 64)
	if err != nil {
		return string(s.Default)
	}
	return number(n)
}

// number writes large round numbers as people say them, too.
func number(n float64) string {
	i := int64(n)
	if float64(i) != n {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	if i >= 1<<15 && i%(1<<10) == 0 {
		return fmt.Sprintf("%d (%s)", i, size(i))
	}
	return strconv.FormatInt(i, 10)
}

// size is a round number of bytes.
func size(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
