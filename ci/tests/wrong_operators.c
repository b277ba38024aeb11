/* Preloaded into the program, it makes two of LibTorch's operators wrong: gelu gives relu, and tanh gives sin. The optimized
   paths compute these themselves, so that baselines and oracles, and nothing else, are wrong: a planted fault that every
   command must report. The names are the mangled at::_ops::<name>::call; results are returned through the first pointer. */
void *_ZN2at4_ops4relu4callERKNS_6TensorE(void *result, const void *self);
void *_ZN2at4_ops3sin4callERKNS_6TensorE(void *result, const void *self);

void *_ZN2at4_ops4gelu4callERKNS_6TensorESt17basic_string_viewIcSt11char_traitsIcEE(void *result, const void *self) {
  return _ZN2at4_ops4relu4callERKNS_6TensorE(result, self);
}

void *_ZN2at4_ops4tanh4callERKNS_6TensorE(void *result, const void *self) {
  return _ZN2at4_ops3sin4callERKNS_6TensorE(result, self);
}
