"""The validatingadmissionpolicy-status controller: are a policy's expressions right for the kinds that it matches?"""
