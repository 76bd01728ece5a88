"""At home beside other libraries. None of them is a dependency: what needs one imports it when it is there."""
