// Package code contains everything that the watermark service decides about failures: the codes, what each means, which are retried and when, and the code of an error that has
// none yet. The engine does the rest. The table is the only one: pages, mails, webhooks, job records and docs/failures.md show its codes.
//
// What the input or the request is to blame for is final. What memory, disk, time or a missing program is to blame for is retried after 1, 5 and 15 minutes. What is not known
// is retried too, because a campaign should not lose a copy to a failure that a second attempt may not meet. Failures to read a mark are final: they have a page of their own.
package code

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/child"
	"github.com/holdfastdev/holdfast/failure"
)

// Codes of videos and pictures that cannot be used.
const (
	InputNotVideo      = "INPUT_NOT_VIDEO"
	InputDamaged       = "INPUT_DAMAGED"
	InputMissing       = "INPUT_MISSING"
	InputHDR           = "INPUT_HDR"
	InputTooLarge      = "INPUT_TOO_LARGE"
	InputTooSmall      = "INPUT_TOO_SMALL"
	InputTooLong       = "INPUT_TOO_LONG"
	InputTooManyTracks = "INPUT_TOO_MANY_TRACKS"
	InputUnsupported   = "INPUT_UNSUPPORTED"
	InputText          = "INPUT_TEXT"
)

// Codes of FFmpeg.
const (
	FFmpegMissing  = "FFMPEG_MISSING"
	FFmpegKilled   = "FFMPEG_KILLED"
	FFmpegMemory   = "FFMPEG_MEMORY"
	FFmpegTimeout  = "FFMPEG_TIMEOUT"
	FFmpegStalled  = "FFMPEG_STALLED"
	FFmpegFailed   = "FFMPEG_FAILED"
	OutputWrong    = "OUTPUT_WRONG"
	OutputTooLarge = "OUTPUT_TOO_LARGE"
)

// Codes of the disk.
const (
	DiskFull  = "DISK_FULL"
	DiskError = "DISK_ERROR"
)

// Codes of reading a mark.
const (
	DetectNoCampaign = "DETECT_NO_CAMPAIGN"
	DetectFailed     = "DETECT_FAILED"
)

// Codes of the service itself.
const (
	UnknownJobType   = "UNKNOWN_JOB_TYPE"
	SystemPanic      = "SYSTEM_PANIC"
	SystemError      = "SYSTEM_ERROR"
	SystemStorage    = "SYSTEM_STORAGE"
	SystemWorkerLost = "SYSTEM_WORKER_LOST"
	SystemExpired    = "SYSTEM_EXPIRED"
)

const (
	retried = true
	final   = false

	user       = failure.BlameUser
	dependency = failure.BlameDependency
	us         = failure.BlameUs
)

// A row is a code: its name, category, whether it is retried, blame, HTTP status, message for users, and remedy for operators.
type row struct {
	name, category  string
	retried         bool
	blame           failure.Blame
	status          int
	message, remedy string
}

var table = []row{
	{InputNotVideo, "input", final, user, 422, "The file is not a video that can be read.", "Upload the original, as MP4, MOV, Matroska or WebM."},
	{InputDamaged, "input", final, user, 422, "The video is damaged or incomplete.", "Play it to the end. If it stops, export it again and upload it as a new asset."},
	{InputMissing, "input", final, us, 500, "The file of the asset is missing.", "Restore the asset's file from a backup, or upload it again; then retry."},
	{InputHDR, "input", final, user, 422, "The video has a high dynamic range, which would be lost.", "Export it with a standard dynamic range (BT.709) and upload that."},
	{InputTooLarge, "input", final, user, 413, "The video is larger than allowed.", "Use a smaller resolution or file, or raise the limits in the settings."},
	{InputTooSmall, "input", final, user, 422, "The pictures of the video are too small to carry a mark.", "Use a video of at least 64×64 pixels; from 480 lines on a mark survives a new encoding."},
	{InputTooLong, "input", final, user, 413, "The video is longer than allowed.", "Split it, or raise the limit in the settings."},
	{InputTooManyTracks, "input", final, user, 422, "The video has more tracks than allowed.", "Remove tracks that recipients do not need."},
	{InputUnsupported, "input", final, user, 422, "The video has something that its copies could not keep.", "Read the detail: it names the track. Convert or remove it."},
	{InputText, "input", final, user, 422, "No font has the characters of the visible mark.", "Install a font for the script (Debian: fonts-noto), or change the name."},

	{FFmpegMissing, "system", retried, us, 503, "FFmpeg cannot be started.", "Install FFmpeg, or correct its path in the settings. Jobs are retried."},
	{FFmpegKilled, "system", retried, us, 503, "FFmpeg was ended by the system.", "Usually memory was short (exit code 137): look at dmesg, lower the number of workers, or add memory."},
	{FFmpegMemory, "system", retried, us, 503, "FFmpeg did not get enough memory.", "Raise the memory limit of FFmpeg in the settings, or lower its threads or the number of workers."},
	{FFmpegTimeout, "timeout", retried, us, 504, "The work took longer than allowed.", "Raise the time limit in the settings if this machine needs longer for such videos."},
	{FFmpegStalled, "timeout", retried, us, 504, "FFmpeg stood still.", "Look at the disk and the load of the machine; the detail has what FFmpeg printed."},
	{FFmpegFailed, "dependency", retried, dependency, 502, "FFmpeg failed.", "Read the detail: it has what FFmpeg printed last."},
	{OutputWrong, "dependency", retried, us, 502, "The copy is not what it should be.", "Read the detail. A copy is offered only if it has the length and the tracks of its source."},
	{OutputTooLarge, "storage", retried, us, 507, "The copy became larger than allowed.", "Raise the limit of the output in the settings, or use a higher CRF."},

	{DiskFull, "storage", retried, us, 507, "There is not enough free disk space.", "Free space in the folder of the service. Jobs are retried."},
	{DiskError, "storage", retried, us, 503, "A file could not be read or written.", "Check the permissions of the folder of the service and the health of its disk."},

	{DetectNoCampaign, "input", final, user, 422, "There is no campaign with an invisible mark to compare with.", "Publish a campaign first, or choose another one."},
	{DetectFailed, "system", final, us, 500, "The mark could not be looked for.", "Read the detail, and upload the clip again. This is not retried by itself."},

	{UnknownJobType, "system", final, us, 500, "The job has an unknown type.", "Run workers of the version that created the job."},
	{SystemPanic, "system", final, us, 500, "The work stopped because of a defect in the program.", "Read the stack in the detail; retry after the correction."},
	{SystemError, "system", retried, us, 500, "An unexpected error occurred.", "Read the detail, then give this error a code."},
	{SystemStorage, "storage", retried, us, 503, "The service cannot reach its storage at the moment.", "Check the database and the disk of the service."},
	{SystemWorkerLost, "lost", final, us, 500, "The work was given up because it lost its worker repeatedly.", "The video probably ends its worker: watch memory before you retry it."},
	{SystemExpired, "expired", final, us, 504, "The work could not start in time.", "Check the backlog; add workers."},
}

// All returns the codes.
func All() []failure.Code {
	codes := make([]failure.Code, len(table))
	for i, r := range table {
		codes[i] = failure.Code{Name: r.name, Category: r.category, Retryable: r.retried, Blame: r.blame, HTTPStatus: r.status, Message: r.message, Remedy: r.remedy}
	}
	return codes
}

// Taxonomy returns the codes as a taxonomy of the engine.
func Taxonomy() *failure.Taxonomy {
	t, err := failure.NewTaxonomy(All()...)
	if err != nil {
		panic(err) // a test checks the table
	}
	return t
}

// aliases maps codes that the engine itself gives to codes of the table.
var aliases = map[string]string{
	"LOST_WORKER": SystemWorkerLost, "POISON": SystemWorkerLost, "JOB_EXPIRED": SystemExpired, "TIMEOUT": FFmpegTimeout, "UNREADABLE_JOB": SystemStorage, "HANDLER_EXITED": SystemPanic,
	"IO_ERROR": DiskError, "STORAGE_ERROR": SystemStorage, "UNKNOWN_KIND": UnknownJobType, "OUT_OF_MEMORY": FFmpegMemory,
}

// Of returns the code with a name. The engine's own codes have a counterpart in the table; any other unknown name is SYSTEM_ERROR.
func Of(name string) failure.Code {
	for _, try := range []string{name, aliases[name], SystemError} {
		for _, c := range All() {
			if c.Name == try {
				return c
			}
		}
	}
	return failure.Code{} // not reached: SYSTEM_ERROR is in the table
}

// permanent are the texts of section 4.5 of the specification, in lower case: an error that contains all texts of a line is final.
var permanent = []struct {
	texts []string
	code  string
}{
	{[]string{"moov atom not found"}, InputDamaged},
	{[]string{"invalid data found when processing input"}, InputDamaged},
	{[]string{"no such file or directory", "input"}, InputMissing},
	{[]string{"unknown job type"}, UnknownJobType},
}

// Classify gives a code to errors that have none.
func Classify(err error) (failure.Class, bool) { return failure.Class{Code: Name(err)}, true }

// Name returns the code of an error: the one that it has, or that of what FFmpeg or the system said.
func Name(err error) string {
	if coded, ok := errors.AsType[*Error](err); ok {
		return coded.Code
	}
	text := strings.ToLower(err.Error())
	for _, p := range permanent {
		all := true
		for _, part := range p.texts {
			all = all && strings.Contains(text, part)
		}
		if all {
			return p.code
		}
	}
	if name := ofChild(err, text); name != "" {
		return name
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return DiskFull
	case strings.Contains(text, "exit status 137"):
		return FFmpegKilled
	case errors.Is(err, context.DeadlineExceeded), strings.Contains(text, "context deadline exceeded"):
		return FFmpegTimeout
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return DiskError
	}
	return SystemError
}

// ofChild returns the code of the end of a program.
func ofChild(err error, text string) string {
	end, ok := errors.AsType[*child.Error](err)
	if !ok {
		return ""
	}
	switch end.Reason {
	case child.NotStarted:
		return FFmpegMissing
	case child.Killed:
		return FFmpegKilled
	case child.OutOfTime:
		return FFmpegTimeout
	case child.Stalled:
		return FFmpegStalled
	case child.FileLimit:
		return OutputTooLarge
	}
	switch {
	case strings.Contains(text, "no space left on device"), strings.Contains(text, "disk quota exceeded"):
		return DiskFull
	case strings.Contains(text, "file too large"):
		return OutputTooLarge
	case strings.Contains(text, "cannot allocate memory"), strings.Contains(text, "malloc"):
		return FFmpegMemory
	case strings.Contains(text, "input/output error"), strings.Contains(text, "permission denied"):
		return DiskError
	}
	return FFmpegFailed
}

// An Error is a failure with its code.
type Error struct {
	Code string
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return failure.WithCode(e.Err, e.Code) }

// New makes the error of a code. Without an error it has the code's message.
func New(name string, err error) error {
	if err == nil {
		err = errors.New(Of(name).Message)
	}
	return &Error{name, err}
}

// Retries is how often a job is retried by itself (max_retries of the specification).
const Retries = 3

// Delays are the times before the retries.
var Delays = failure.Table{time.Minute, 5 * time.Minute, 15 * time.Minute}

// MaxCrashes is how many workers a job may lose before it ends as SYSTEM_WORKER_LOST. The specification does not count lost workers at all; this is far above what
// deployments and machines cause, and keeps a video that ends each of its workers from doing that for ever.
const MaxCrashes = 20

// Policy returns when a failure is retried. A lost worker spends no retry.
func Policy() failure.Policy {
	return failure.Policy{MaxAttempts: 1 + Retries, Backoff: Delays, MaxCrashes: MaxCrashes, CrashBackoff: failure.Fixed(0)}
}
