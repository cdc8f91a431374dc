package main

import (
	"github.com/holdfastdev/holdfast"
)

// The queues. Conversions wait for workers. Refusals have their own queue, which every web process works on, so that they never wait behind a backlog of conversions.
const (
	queueConvert = "convert"
	queueRefuse  = "refuse"
)

// Conversion is the job that converts one PDF to XML.
type Conversion struct {
	Name    string `json:"name"`    // the file's name, as uploaded
	Mapping string `json:"mapping"` // the mapping by which the gateway converts it
	SHA256  string `json:"sha256"`
	Bytes   int64  `json:"bytes"`
	Source  string `json:"source"` // its key in the uploads
}

// Kind returns the kind of the job.
func (Conversion) Kind() string { return "conversion" }

// Refusal is the record of a file that was refused: a job that always fails, with the code that the upload was answered with (C1).
type Refusal struct {
	Name    string `json:"name"`
	Mapping string `json:"mapping"`
	Bytes   int64  `json:"bytes"` // bytes that were read
	Code    string `json:"code"`
	Detail  string `json:"detail,omitempty"` // for operators
}

// Kind returns the kind of the job.
func (Refusal) Kind() string { return "refusal" }

// Result describes the XML of a conversion.
type Result struct {
	Key    string `json:"key"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Found  bool   `json:"found,omitempty"` // an earlier attempt had written it and could not settle the job (C10)
}

// The artifacts of a conversion, by their names in the store. They expire independently (C12).
const (
	artifactSource = "source"
	artifactResult = "result"
)

// sourceKey is the key of a job's PDF in the uploads, resultKey that of its XML in the results. Both consist of the job's id alone: every file can be traced to its job,
// and a job cannot have two.
func sourceKey(id holdfast.ID) string { return id.String() + ".pdf" }
func resultKey(id holdfast.ID) string { return id.String() + ".xml" }
