package profile

// Artifacts are results that were too large for the model (`limits.max_result_bytes`). What is known of one stays with its session.
type Artifacts struct {
	// Days that the content of an artifact is kept. 0: as long as its session.
	KeepDays int `json:"keep_days" default:"7" min:"0" max:"36500"`
	// Artifacts of one session whose content is kept; the oldest go first. 0: no limit.
	MaxFiles int `json:"max_files" default:"50" min:"0"`
	// Bytes of all artifacts of one session; the oldest go first. Of one that is larger by itself the beginning is stored. 0: no limit.
	MaxBytes int64 `json:"max_bytes" default:"20971520" min:"0"`
}

// Images bound the images of one request to a model: its newest. In the place of the others stands a text.
type Images struct {
	// Images of one request. Providers take 100 and more, but Anthropic refuses images of more than 2,000 pixels when there are more than 20. 0: no limit.
	MaxCount int `json:"max_count" default:"20" min:"0"`
	// Bytes of all images of one request, decoded. Anthropic takes requests of 32 MB, in which images are a third larger. 0: no limit.
	MaxBytes int64 `json:"max_bytes" default:"20971520" min:"0"`
}
