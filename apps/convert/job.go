package main

import (
	"github.com/holdfastdev/holdfast"
)

// The queues. Conversions wait for workers; refusals are written down by whichever process is there, so that they never wait behind a backlog.
const (
	queueConvert = "convert"
	queueRefuse  = "refuse"
)

// Conversion is the job: one PDF that is to become XML.
type Conversion struct {
	Name    string `json:"name"`    // what its owner calls the file
	Mapping string `json:"mapping"` // what the gateway makes of it
	SHA256  string `json:"sha256"`
	Bytes   int64  `json:"bytes"`
	Source  string `json:"source"` // its key among the uploads
}

// Kind is what workers know it by.
func (Conversion) Kind() string { return "conversion" }

// Refusal is the record of a file that was not taken: a job that can only fail, with the code that the upload was answered with (C1).
type Refusal struct {
	Name    string `json:"name"`
	Mapping string `json:"mapping"`
	Bytes   int64  `json:"bytes"` // as many as were read
	Code    string `json:"code"`
	Detail  string `json:"detail,omitempty"` // for operators
}

// Kind is what workers know it by.
func (Refusal) Kind() string { return "refusal" }

// Result is what a conversion left: the XML lies among the results under the job's id.
type Result struct {
	Key    string `json:"key"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Found  bool   `json:"found,omitempty"` // it was there already: an earlier attempt had finished and could not say so (C10)
}

// Artifacts of a conversion, by their names in the store. They expire apart (C12).
const (
	artifactSource = "source"
	artifactResult = "result"
)

// sourceKey is where the PDF of a job lies among the uploads, resultKey its XML among the results. Both are made of the job's id alone, so that whatever
// lies there can be traced to its job, and no second file can come to be.
func sourceKey(id holdfast.ID) string { return id.String() + ".pdf" }
func resultKey(id holdfast.ID) string { return id.String() + ".xml" }
