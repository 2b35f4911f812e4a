package model

// withAzure adds what Azure serves: OpenAI's models under the same ids, at what OpenAI
// takes for them, which is also Azure's price of its Global Standard deployments. Those
// that are bound to a region or a data zone cost about a tenth more; NewCatalogue takes
// corrections.
func withAzure(models []Info) []Info {
	for _, i := range models[:len(models):len(models)] {
		if i.Provider == "openai" {
			i.Provider, i.Source = "azure", i.Source+"; the same at Azure (Global Standard)"
			models = append(models, i)
		}
	}
	return models
}
